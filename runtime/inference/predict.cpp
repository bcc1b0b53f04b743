#include <gpunn/error.hpp>
#include <gpunn/model.hpp>
#include <gpunn/training.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "data/images/image.hpp"
#include "data/parallel.hpp"
#include "inference/image_sample.hpp"
#include "inference/sample_files.hpp"
#include "tasks/task.hpp"
#include "training/evaluation_part.hpp"
#include "training/model_info.hpp"

namespace gpunn {

using inference::FileSample;

namespace {

constexpr int64_t kLargestPredicted = 64;   // rows at a time
constexpr int64_t kMostShownBoxes = 10000;  // of an image

std::vector<FileSample> test_rows(const std::vector<int64_t>& rows, const Model& model) {
  if (rows.empty()) return {};
  const Dataset data = training::load_for(model.experiment().data, EvaluationPart::test);
  training::require_data_of(model.info(), data);
  const std::string part = name_of(data.evaluated);
  std::vector<FileSample> samples;
  for (const int64_t row : rows) {
    if (row < 0 || row >= data.test.rows()) {
      throw Error("row " + std::to_string(row) + " is not one of the " + std::to_string(data.test.rows()) + " " + part +
                      " rows of '" + data.name + "', which count from 0",
                  ExitCode::usage);
    }
    const auto index = static_cast<std::size_t>(row);
    samples.push_back({.source = data.name + " " + part + " row " + std::to_string(row),
                       .image = {},
                       .values = sample_of(data.test, row),
                       .label = {},
                       .dtype = data.test.samples.dtype});
    if (!data.test.labels.empty()) samples.back().label = data.test.labels[index];
  }
  return samples;
}

// The values of some samples of one type, one after the other.
void gather(std::span<const FileSample> samples, const InputInfo& input, std::vector<std::byte>& batch) {
  const std::size_t bytes = static_cast<std::size_t>(input.sample.elements()) * size_of(samples.front().dtype);
  batch.resize(samples.size() * bytes);
  data::for_row_stretches(static_cast<int64_t>(samples.size()), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      const FileSample& sample = samples[i];
      if (sample.image.empty()) {
        std::memcpy(batch.data() + i * bytes, sample.values.data(), bytes);
      } else {
        std::memcpy(batch.data() + i * bytes, read_image(sample.image, input).data(), bytes);
      }
    }
  });
}

// In pixels of the image that the sample was made of.
std::vector<DetectedBox> on_image(std::vector<DetectedBox> boxes, const FileSample& sample, const InputInfo& input) {
  if (boxes.empty() || sample.image.empty()) return boxes;
  const data::Image image = data::read_image_file(sample.image);
  return inference::boxes_on_image(std::move(boxes), image.height, image.width, input);
}

void require_answerable(const PredictRequest& request) {
  if (request.inputs.empty() && request.rows.empty()) {
    throw Error("nothing to predict: give files, or --row N for rows of the test set", ExitCode::usage);
  }
  if (request.top_k < 1) throw Error("top must be at least 1, is " + std::to_string(request.top_k), ExitCode::usage);
}

}  // namespace

std::vector<Prediction> predict(const TrainedModel& trained, const PredictRequest& request) {
  require_answerable(request);
  return predict(
      Model::load(trained.path, {.max_batch = kLargestPredicted, .calls = 1, .overrides = trained.overrides}), request);
}

std::vector<Prediction> predict(const Model& model, const PredictRequest& request) {
  require_answerable(request);
  if (tasks::find(model.info().task).target_kind() == TargetKind::image) {
    throw Error("a model of the task " + model.info().task + " gives images, which `gpunn " +
                    (model.info().task == "style_transfer" ? "stylize" : "upscale") +
                    " RUN image.png --to out.png` writes",
                ExitCode::usage);
  }
  const bool boxes = tasks::find(model.info().task).target_kind() == TargetKind::boxes;
  const auto largest = static_cast<std::size_t>(std::min(kLargestPredicted, model.max_batch()));
  const InputInfo& input = model.info().input;
  std::vector<FileSample> samples = inference::samples_in(request.inputs, model.info(), model.experiment().data);
  for (FileSample& sample : test_rows(request.rows, model)) samples.push_back(std::move(sample));

  std::vector<Prediction> predictions;
  std::vector<std::byte> batch;
  Shape shape = batch_shape(input.sample.shape, 0);
  for (std::size_t first = 0, count = 0; first < samples.size(); first += count) {
    auto part = std::span(samples).subspan(first, std::min(largest, samples.size() - first));
    const auto other =
        std::ranges::find_if(part, [&](const FileSample& sample) { return sample.dtype != part.front().dtype; });
    part = part.first(static_cast<std::size_t>(other - part.begin()));
    count = part.size();
    gather(part, input, batch);
    shape.front() = static_cast<int64_t>(count);
    std::vector<Decoded> decoded =
        model.predict({.name = input.name, .dtype = part.front().dtype, .shape = shape, .data = batch.data()},
                      boxes ? std::max<int64_t>(request.top_k, kMostShownBoxes) : request.top_k);
    for (std::size_t i = 0; i < count; ++i) {
      predictions.push_back({.source = part[i].source,
                             .top = std::move(decoded[i].classes),
                             .values = std::move(decoded[i].values),
                             .label = part[i].label,
                             .boxes = on_image(std::move(decoded[i].boxes), part[i], input)});
    }
  }
  return predictions;
}

}  // namespace gpunn
