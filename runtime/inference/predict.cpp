#include <gpunn/error.hpp>
#include <gpunn/model.hpp>
#include <gpunn/training.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "common/parallel.hpp"
#include "data/damaged_files.hpp"
#include "data/images/image.hpp"
#include "inference/full_size.hpp"
#include "inference/image_sample.hpp"
#include "inference/sample_files.hpp"
#include "tasks/task.hpp"
#include "training/evaluation_part.hpp"
#include "training/model_info.hpp"

namespace gpunn {

using inference::FileSample;

namespace {

constexpr int64_t kLargestPredicted = 64;  // rows at a time

// The size and id of the image that a row was made of.
void add_original(FileSample& sample, const Split& part, std::size_t row) {
  if (const auto images = part.fields.find(kImagesField); images != part.fields.end()) {
    std::array<int64_t, kImageNumbers> numbers = {};
    std::memcpy(numbers.data(), images->second.values.data() + row * sizeof(numbers), sizeof(numbers));
    sample.height = numbers[0];
    sample.width = numbers[1];
  }
  if (const auto ids = part.fields.find(kImageIdsField); ids != part.fields.end()) {
    const auto at = [&](std::size_t i) { return static_cast<std::size_t>(ids->second.offsets[i]); };
    const auto* const bytes = reinterpret_cast<const char*>(ids->second.values.data());
    sample.image_id.assign(bytes + at(row), bytes + at(row + 1));
  }
}

std::vector<FileSample> test_rows(const std::vector<int64_t>& rows, const Model& model) {
  if (rows.empty()) return {};
  const Dataset data = training::load_for(model.experiment().data, EvaluationPart::test);
  training::require_data_of(model.info(), data);
  const std::string part = name_of(data.evaluated);
  const std::vector<int32_t> labels = labels_of(data.test);
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
    if (!labels.empty()) samples.back().label = labels[index];
    add_original(samples.back(), data.test, index);
  }
  return samples;
}

// Samples of a batch without damaged images that are left out, and their values one after the other.
struct Gathered {
  std::vector<const FileSample*> samples;
  std::vector<data::ImageSides> sides;  // of the images that the samples were made of
  std::vector<std::byte> values;
};

// Of samples of one type.
Gathered gather(std::span<const FileSample> samples, const Field& input, data::DamagedFiles& damaged) {
  const std::size_t bytes = static_cast<std::size_t>(input.type.elements()) * size_of(samples.front().dtype);
  std::vector<std::vector<std::byte>> values(samples.size());
  std::vector<data::ImageSides> sides(samples.size());
  for_row_stretches(static_cast<int64_t>(samples.size()), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      const FileSample& sample = samples[i];
      if (sample.image.empty()) {
        values[i] = sample.values;
        sides[i] = {sample.height, sample.width};
        continue;
      }
      inference::ImageSample image;
      const auto read = [&](std::string* damage) { image = inference::image_sample(sample.image, input, damage); };
      if (!damaged.sound(sample.image, read)) continue;
      const auto pixels = std::as_bytes(std::span(image.values));
      values[i].assign(pixels.begin(), pixels.end());
      sides[i] = {image.height, image.width};
    }
  });
  Gathered gathered;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (values[i].size() != bytes) continue;
    gathered.samples.push_back(&samples[i]);
    gathered.sides.push_back(sides[i]);
    gathered.values.insert(gathered.values.end(), values[i].begin(), values[i].end());
  }
  return gathered;
}

// In pixels of the image that the sample was made of.
Decoded on_image(Decoded decoded, data::ImageSides image, const Field& input) {
  if (image.height == 0) return decoded;
  decoded.boxes = inference::boxes_on_image(std::move(decoded.boxes), image.height, image.width, input);
  if (decoded.map) decoded.map = inference::map_on_image(*std::move(decoded.map), image.height, image.width, input);
  return decoded;
}

// Each image by itself, in tiles.
std::vector<Prediction> predict_by_tiles(const Model& model, std::span<const FileSample> samples,
                                         const PredictRequest& request, data::DamagedFiles& damaged) {
  const tasks::Task& task = tasks::find(model.info().task);
  std::vector<Prediction> predictions;
  for (const FileSample& sample : samples) {
    if (sample.image.empty()) throw Error(sample.source + ": tiles are of image files", ExitCode::usage);
    data::Image picture;
    const auto read = [&](std::string* damage) { picture = data::read_image_file(sample.image, damage); };
    if (!damaged.sound(sample.image, read)) continue;
    LabelMap map = inference::map_of_picture(model, picture, *request.full_size);
    const std::vector<float> classes(map.classes.begin(), map.classes.end());
    Decoded decoded = task.decode({.values = classes,
                                   .shape = {map.height, map.width},
                                   .names = model.info().fields.target().names,
                                   .top = std::max(request.top_k, task.answers().least)});
    predictions.push_back({.source = sample.source,
                           .top = std::move(decoded.classes),
                           .values = {},
                           .label = sample.label,
                           .boxes = {},
                           .image_id = sample.image_id,
                           .map = std::move(map)});
  }
  return predictions;
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
  const tasks::Task& task = tasks::find(model.info().task);
  const tasks::Answers answers = task.answers();
  if (answers.images) {
    throw Error(
        "a model of the task " + model.info().task + " gives images, which `gpunn " + task.command("RUN") + "` writes",
        ExitCode::usage);
  }
  const auto largest = static_cast<std::size_t>(std::min(kLargestPredicted, model.max_batch()));
  const Field& input = model.info().fields.input();
  std::vector<FileSample> samples = inference::samples_in(request.inputs, model.info(), model.experiment().data);
  for (FileSample& sample : test_rows(request.rows, model)) samples.push_back(std::move(sample));

  std::vector<Prediction> predictions;
  data::DamagedFiles damaged(request.damaged);
  if (request.full_size) {
    predictions = predict_by_tiles(model, samples, request, damaged);
    samples.clear();
  }
  Shape shape = batch_shape(input.type.shape, 0);
  for (std::size_t first = 0, count = 0; first < samples.size(); first += count) {
    auto rows = std::span(samples).subspan(first, std::min(largest, samples.size() - first));
    const auto other =
        std::ranges::find_if(rows, [&](const FileSample& sample) { return sample.dtype != rows.front().dtype; });
    rows = rows.first(static_cast<std::size_t>(other - rows.begin()));
    count = rows.size();
    const Gathered part = gather(rows, input, damaged);
    if (part.samples.empty()) continue;
    shape.front() = std::ssize(part.samples);
    std::vector<Decoded> decoded =
        model.predict({.name = input.name, .dtype = rows.front().dtype, .shape = shape, .data = part.values.data()},
                      std::max(request.top_k, answers.least));
    for (std::size_t i = 0; i < part.samples.size(); ++i) {
      Decoded one = on_image(std::move(decoded[i]), part.sides[i], input);
      predictions.push_back({.source = part.samples[i]->source,
                             .top = std::move(one.classes),
                             .values = std::move(one.values),
                             .label = part.samples[i]->label,
                             .boxes = std::move(one.boxes),
                             .image_id = part.samples[i]->image_id,
                             .map = std::move(one.map)});
    }
  }
  damaged.report(request.on_damaged);
  return predictions;
}

}  // namespace gpunn
