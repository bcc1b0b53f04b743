#include "training/targets.hpp"

#include <gpunn/error.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "common/text.hpp"
#include "data/described.hpp"
#include "data/images/image.hpp"
#include "tasks/losses.hpp"
#include "tasks/task.hpp"
#include "training/session.hpp"

namespace gpunn::training {

void require_targets(const Experiment& experiment, const Dataset& dataset) {
  const tasks::Task& task = tasks::find(experiment.task);
  if (task.target_kind() == dataset.targets) return;
  const auto has = [&] {
    const std::string count = std::to_string(dataset.classes);
    switch (dataset.targets) {
      case TargetKind::numbers:
        return count + " numbers a sample";
      case TargetKind::labels:
        return "any of " + count + " labels a sample";
      case TargetKind::image:
        return std::string("an image to be made of each sample");
      case TargetKind::boxes:
        return "boxes of " + count + " classes";
      case TargetKind::one_class:
        break;
    }
    return std::string("a class a sample");
  };
  std::string fitting;
  for (const tasks::Task* other : tasks::all()) {
    if (fitting.empty() && other->target_kind() == dataset.targets) fitting = other->name();
  }
  throw Error(experiment.file.string() + ": " + data::described(dataset) + " has " + has() + ", the task " +
                  experiment.task + " with the loss " + tasks::name_of(experiment.loss.type()) + " learns " +
                  std::string(task.target()) + ", which the last layer '" + experiment.model.layers.back().name +
                  "' gives; set task: " + fitting + ", or choose data with " + std::string(task.target()),
              ExitCode::usage);
}

void require_samples(const Experiment& experiment, const Dataset& dataset) {
  const ModelSpec& model = experiment.model;
  const Shape sample = sample_shape(dataset);
  if (model.input.empty() || model.input == sample) return;
  throw Error(model.file.string() + ": the model " + model.name + " takes samples of " + to_string(Shape(model.input)) +
                  "; those of " + data::described(dataset) + " are " + to_string(sample),
              ExitCode::usage);
}

void scale_targets(Dataset& dataset) {
  if (dataset.target_mean.empty()) return;
  for (Split* part : {&dataset.train, &dataset.validation, &dataset.test}) {
    const auto field = part->fields.find(kTargetField);
    if (field == part->fields.end() || dataset.targets == TargetKind::image) continue;
    std::vector<std::byte>& bytes = field->second.values;
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      const std::size_t column = i % dataset.target_mean.size();
      float value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof(float), sizeof(float));
      const double centred = static_cast<double>(value) - dataset.target_mean[column];
      value = static_cast<float>(centred / dataset.target_stddev[column]);
      std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(float));
    }
  }
}

void to_data_units(std::span<float> values, const std::vector<double>& mean, const std::vector<double>& stddev) {
  for (std::size_t i = 0; !mean.empty() && i < values.size(); ++i) {
    const std::size_t column = i % mean.size();
    values[i] = static_cast<float>(static_cast<double>(values[i]) * stddev[column] + mean[column]);
  }
}

std::vector<float> targets_in_data_units(const Dataset& dataset, const Split& part, int64_t first, int64_t rows) {
  if (!part.singles.empty()) {
    const std::vector<std::byte>& image = part.singles[static_cast<std::size_t>(first)].fields.at(kTargetField).values;
    std::vector<float> result(image.size() / sizeof(float));
    std::memcpy(result.data(), image.data(), image.size());
    return result;
  }
  const Field& field = part.fields.at(kTargetField);
  const auto columns = static_cast<std::size_t>(field.type.elements() / field.type.shape.at(0));
  std::vector<float> result(static_cast<std::size_t>(rows) * columns);
  const std::vector<std::byte>& bytes = field.values;
  std::memcpy(result.data(), bytes.data() + static_cast<std::size_t>(first) * columns * sizeof(float),
              result.size() * sizeof(float));
  to_data_units(result, dataset.target_mean, dataset.target_stddev);
  return result;
}

namespace {

template <class T, std::size_t count>
std::array<T, count> numbers_at(const Field& field, int64_t item) {
  std::array<T, count> numbers = {};
  std::memcpy(numbers.data(), field.values.data() + static_cast<std::size_t>(item) * sizeof(numbers), sizeof(numbers));
  return numbers;
}

tasks::TrueBox object_at(const Field& objects, int64_t item) {
  const auto numbers = numbers_at<double, kObjectNumbers>(objects, item);
  tasks::TrueBox object{.box = {numbers[0], numbers[1], numbers[2], numbers[3]},
                        .category = static_cast<int64_t>(numbers[4]),
                        .difficult = numbers[6] != 0,
                        .crowd = numbers[7] != 0,
                        .has_id_zero = numbers[8] != 0};
  if (!std::isnan(numbers[5])) object.area = numbers[5];
  return object;
}

// None if the data lacks them.
std::vector<tasks::TrueImage> originals_of(const Split& part, int64_t first, int64_t rows) {
  const auto objects = part.fields.find(kObjectsField), images = part.fields.find(kImagesField);
  if (objects == part.fields.end() || images == part.fields.end()) return {};
  const std::vector<int64_t>& offsets = objects->second.offsets;
  const Shape& sample = part.samples.shape;
  std::vector<tasks::TrueImage> originals;
  for (int64_t row = first; row < first + rows; ++row) {
    const auto [height, width, order] = numbers_at<int64_t, kImageNumbers>(images->second, row);
    originals.push_back({.objects = {},
                         .height = static_cast<double>(height),
                         .width = static_cast<double>(width),
                         .scale = data::fit_inside_scale({height, width, 1, {}}, sample[2], sample[3]),
                         .order = order});
    const auto place = static_cast<std::size_t>(row);
    for (int64_t item = offsets[place]; item < offsets[place + 1]; ++item) {
      originals.back().objects.push_back(object_at(objects->second, item));
    }
  }
  return originals;
}

}  // namespace

RowsToScore::RowsToScore(const Dataset& dataset, const RowOutputs& rows)
    : targets_(targets_in_data_units(dataset, dataset.test, rows.first, static_cast<int64_t>(rows.losses.size()))) {
  rows_ = {.outputs = static_cast<int64_t>(rows.predictions.size() / rows.losses.size()),
           .predictions = rows.predictions,
           .targets = targets_,
           .target_size = static_cast<int64_t>(targets_.size() / rows.losses.size())};
  originals_ = originals_of(dataset.test, rows.first, std::ssize(rows.losses));
  rows_.originals = originals_;
  if (dataset.test.singles.empty()) return;
  const Split& image = dataset.test.singles[static_cast<std::size_t>(rows.first)];
  const std::span<const std::byte> bytes = image.sample_bytes();
  inputs_.resize(bytes.size() / sizeof(float));
  std::memcpy(inputs_.data(), bytes.data(), bytes.size());
  const auto without_rows = [](const Shape& shape) { return Shape(shape.begin() + 1, shape.end()); };
  rows_.images = {.input_shape = without_rows(image.samples.shape),
                  .target_shape = without_rows(image.fields.at(kTargetField).type.shape),
                  .inputs = inputs_,
                  .scale = dataset.scale};
}

}  // namespace gpunn::training
