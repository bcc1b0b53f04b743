#include <gpunn/training.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "training/trained_model.hpp"

namespace gpunn {

namespace {

// The samples to predict, gathered in one split, with where each came from.
struct Samples {
  Split split;
  std::vector<Prediction> predictions;
};

void append_sample(Samples& samples, std::span<const std::byte> values, Prediction prediction) {
  samples.split.values.insert(samples.split.values.end(), values.begin(), values.end());
  samples.split.labels.push_back(static_cast<int32_t>(prediction.label.value_or(0)));
  samples.predictions.push_back(std::move(prediction));
}

void append_images(Samples& samples, const std::vector<std::filesystem::path>& images, const Dataset& data) {
  if (images.empty()) return;
  const TensorType& type = data.test.samples;
  if (type.shape.size() != 4 || type.dtype != DType::u8) {
    throw Error("the model takes rows of " + to_string(type) + ", not images; use --row for a row of its test set",
                ExitCode::usage);
  }
  for (const std::filesystem::path& image : images) {
    // Where the samples are light on dark, as MNIST is, a scan or a drawing is most often dark on light.
    const std::vector<uint8_t> pixels =
        read_image(image, type.shape[1], type.shape[2], type.shape[3], data.light_on_dark, data.fit);
    append_sample(samples, std::as_bytes(std::span(pixels)), {.source = image.string(), .top = {}, .label = {}});
  }
}

void append_rows(Samples& samples, const std::vector<int64_t>& rows, const Experiment& experiment) {
  if (rows.empty()) return;
  const Dataset data = training::load_for(experiment.data, EvaluationPart::test);
  const std::size_t bytes = data.test.values.size() / static_cast<std::size_t>(data.test.rows());
  const std::string part = name_of(data.evaluated);
  for (const int64_t row : rows) {
    if (row < 0 || row >= data.test.rows()) {
      throw Error("row " + std::to_string(row) + " is not one of the " + std::to_string(data.test.rows()) + " " + part +
                      " rows of '" + data.name + "', which count from 0",
                  ExitCode::usage);
    }
    const auto index = static_cast<std::size_t>(row);
    append_sample(samples, std::span(data.test.values).subspan(index * bytes, bytes),
                  {.source = data.name + " " + part + " row " + std::to_string(row),
                   .top = {},
                   .label = data.test.labels[index]});
  }
}

}  // namespace

std::vector<Prediction> predict(const TrainedModel& model, const PredictRequest& request) {
  if (request.images.empty() && request.rows.empty()) {
    throw Error("nothing to predict: give image files, or --row N for rows of the test set", ExitCode::usage);
  }
  if (request.top_k < 1) throw Error("top must be at least 1, is " + std::to_string(request.top_k), ExitCode::usage);
  const auto session = training::open_trained(model, nullptr);
  const Dataset& data = session->dataset();

  Samples samples;
  samples.split.samples = data.test.samples;
  append_images(samples, request.images, data);
  append_rows(samples, request.rows, session->experiment());
  samples.split.samples.shape[0] = static_cast<int64_t>(samples.predictions.size());

  const std::vector<float> probabilities = session->predictions(samples.split);
  const auto classes = static_cast<std::size_t>(data.classes);
  const std::size_t top = std::min(static_cast<std::size_t>(request.top_k), classes);
  std::vector<std::size_t> order(classes);
  for (std::size_t i = 0; i < samples.predictions.size(); ++i) {
    const float* row = probabilities.data() + i * classes;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return row[a] > row[b]; });
    for (std::size_t k = 0; k < top; ++k) {
      const std::size_t index = order[k];
      samples.predictions[i].top.push_back(
          {.index = static_cast<int64_t>(index),
           .name = index < data.class_names.size() ? data.class_names[index] : std::to_string(index),
           .probability = row[index]});
    }
  }
  return samples.predictions;
}

}  // namespace gpunn
