#include <gpunn/error.hpp>
#include <gpunn/model.hpp>
#include <gpunn/training.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "common/parallel.hpp"
#include "data/folders/damaged_files.hpp"
#include "data/images/image.hpp"
#include "data/rows/rows.hpp"
#include "feed/evaluation_part.hpp"
#include "feed/model_samples.hpp"
#include "inference/results/full_size.hpp"
#include "inference/samples/image_sample.hpp"
#include "inference/samples/sample_files.hpp"
#include "runs/model_info.hpp"
#include "tasks/task.hpp"

namespace gpunn {

using inference::FileSample;
using inference::InputRow;

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

// A row of the test part for each input of the model.
std::vector<InputRow> input_rows(const Dataset& data, int64_t row, const Schema& model) {
  Schema fields = data.fields;
  const Split one = data::with_values(data.test, {&row, 1});
  std::vector<InputRow> rows;
  for (const auto& [taken, given] : training::paired_inputs(model, fields)) {
    if (given == &fields.input()) {
      rows.push_back({.values = one.values, .dtype = one.samples.dtype});
    } else {
      const FieldValues& values = one.fields.at(given->name);
      rows.push_back({.values = values.values, .dtype = values.type.dtype});
    }
  }
  return rows;
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
                       .inputs = input_rows(data, row, model.info().fields)});
    if (!labels.empty()) samples.back().label = labels[index];
    add_original(samples.back(), data.test, index);
  }
  return samples;
}

// Samples of a batch without damaged images that are left out, and their values one after the other.
struct Gathered {
  std::vector<const FileSample*> samples;
  std::vector<data::ImageSides> sides;         // of the images that the samples were made of
  std::vector<std::vector<std::byte>> values;  // of each input
};

// The values of an input; nothing if its image is damaged. `sides` becomes the size of the image.
std::optional<std::vector<std::byte>> values_of(const InputRow& row, const Field& input, data::DamagedFiles& damaged,
                                                data::ImageSides& sides) {
  if (row.image.empty()) return row.values;
  inference::ImageSample image;
  const auto read = [&](std::string* damage) { image = inference::image_sample(row.image, input, damage); };
  if (!damaged.sound(row.image, read)) return std::nullopt;
  sides = {image.height, image.width};
  const auto pixels = std::as_bytes(std::span(image.values));
  return std::vector<std::byte>(pixels.begin(), pixels.end());
}

// Of samples of one type.
Gathered gather(std::span<const FileSample> samples, const std::vector<const Field*>& inputs,
                data::DamagedFiles& damaged) {
  std::vector<std::vector<std::vector<std::byte>>> values(samples.size());
  std::vector<data::ImageSides> sides(samples.size());
  for_row_stretches(static_cast<int64_t>(samples.size()), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      sides[i] = {samples[i].height, samples[i].width};
      for (std::size_t input = 0; input < inputs.size(); ++input) {
        data::ImageSides other;
        std::optional<std::vector<std::byte>> row =
            values_of(samples[i].inputs[input], *inputs[input], damaged, input == 0 ? sides[i] : other);
        if (row) values[i].push_back(*std::move(row));
      }
    }
  });
  Gathered gathered;
  gathered.values.resize(inputs.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (values[i].size() < inputs.size()) continue;
    gathered.samples.push_back(&samples[i]);
    gathered.sides.push_back(sides[i]);
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      std::vector<std::byte>& all = gathered.values[input];
      all.insert(all.end(), values[i][input].begin(), values[i][input].end());
    }
  }
  return gathered;
}

std::vector<DType> dtypes_of(const FileSample& sample) {
  std::vector<DType> dtypes;
  for (const InputRow& row : sample.inputs) dtypes.push_back(row.dtype);
  return dtypes;
}

// The samples of a batch for each input; both arguments outlive them.
std::vector<ArrayView> arrays_of(const Gathered& part, const std::vector<const Field*>& inputs,
                                 std::vector<Shape>& shapes) {
  shapes.clear();
  std::vector<ArrayView> arrays;
  for (const Field* input : inputs) shapes.push_back(batch_shape(input->type.shape, std::ssize(part.samples)));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    arrays.push_back({.name = inputs[i]->name,
                      .dtype = part.samples.front()->inputs[i].dtype,
                      .shape = shapes[i],
                      .data = part.values[i].data()});
  }
  return arrays;
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
    if (sample.image().empty()) throw Error(sample.source + ": tiles are of image files", ExitCode::usage);
    data::Image picture;
    const auto read = [&](std::string* damage) { picture = data::read_image_file(sample.image(), damage); };
    if (!damaged.sound(sample.image(), read)) continue;
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
  const std::vector<const Field*> inputs = model.info().fields.of(Role::input);
  std::vector<Shape> shapes;
  for (std::size_t first = 0, count = 0; first < samples.size(); first += count) {
    auto rows = std::span(samples).subspan(first, std::min(largest, samples.size() - first));
    const auto other =
        std::ranges::find_if(rows, [&](const FileSample& one) { return dtypes_of(one) != dtypes_of(rows.front()); });
    rows = rows.first(static_cast<std::size_t>(other - rows.begin()));
    count = rows.size();
    const Gathered part = gather(rows, inputs, damaged);
    if (part.samples.empty()) continue;
    std::vector<Decoded> decoded =
        model.predict(arrays_of(part, inputs, shapes), std::max(request.top_k, answers.least));
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
