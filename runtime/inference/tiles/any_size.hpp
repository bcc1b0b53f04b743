#pragma once

#include <gpunn/model.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <optional>
#include <vector>

#include "data/images/planes.hpp"

namespace gpunn::inference {

// Of the sides of images that models with strides keep.
inline constexpr int64_t kMultipleOfSides = 8;

// A model that makes images of images of any size, opened for the size of its input that was asked for last.
class AnySize {
 public:
  // It gets each image `rows` times.
  explicit AnySize(const TrainedModel& trained, int64_t rows = 1);

  const Experiment& experiment() const { return model_->experiment(); }
  const ModelInfo& info() const { return model_->info(); }

  // What the model makes of each row.
  std::vector<data::Planes> run(const data::Planes& input);

 private:
  void open(std::vector<int64_t> size);

  const TrainedModel& trained_;
  int64_t rows_;
  std::optional<Model> model_;
  std::vector<int64_t> size_;
};

}  // namespace gpunn::inference
