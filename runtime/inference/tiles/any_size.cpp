#include "inference/tiles/any_size.hpp"

#include <gpunn/error.hpp>

#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

namespace gpunn::inference {

using data::Planes;

AnySize::AnySize(const TrainedModel& trained, int64_t rows) : trained_(trained), rows_(rows) { open({}); }

std::vector<Planes> AnySize::run(const Planes& input) {
  if (size_ != std::vector<int64_t>{input.height, input.width}) open({input.height, input.width});
  const TensorType& row = model_->outputs().front().row;
  if (row.shape.size() != 3) throw Error("the model gives " + to_string(row) + "; expected an image [C, H, W]");
  std::vector<float> inputs;
  for (int64_t i = 0; i < rows_; ++i) inputs.insert(inputs.end(), input.values.begin(), input.values.end());
  std::vector<float> outputs(static_cast<std::size_t>(rows_ * row.elements()));
  const std::array<int64_t, 4> from = {rows_, input.channels, input.height, input.width};
  const std::array<int64_t, 4> to = {rows_, row.shape[0], row.shape[1], row.shape[2]};
  model_->run({.name = {}, .dtype = DType::f32, .shape = from, .data = inputs.data()},
              {.name = {}, .dtype = DType::f32, .shape = to, .data = outputs.data()});
  std::vector<Planes> images;
  for (auto first = outputs.begin(); first != outputs.end();) {
    const auto end = std::next(first, row.elements());
    images.push_back({row.shape[0], row.shape[1], row.shape[2], {first, end}});
    first = end;
  }
  return images;
}

void AnySize::open(std::vector<int64_t> size) {
  model_.reset();  // first, so that the device need not hold two
  model_ =
      Model::load(trained_.path, {.max_batch = rows_, .calls = 1, .overrides = trained_.overrides, .image_size = size});
  size_ = std::move(size);
}

}  // namespace gpunn::inference
