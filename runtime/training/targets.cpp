#include "training/targets.hpp"

#include <gpunn/error.hpp>

#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "common/text.hpp"
#include "data/described.hpp"
#include "data/images/image.hpp"
#include "fields/kind.hpp"
#include "fields/standardise.hpp"
#include "tasks/losses.hpp"
#include "tasks/task.hpp"
#include "training/session.hpp"

namespace gpunn::training {

void require_targets(const Experiment& experiment, const Dataset& dataset) {
  const tasks::Task& task = tasks::find(experiment.task);
  const Field& target = dataset.fields.target();
  if (task.target_kind() == target.kind) return;
  std::string fitting;
  for (const tasks::Task* other : tasks::all()) {
    if (fitting.empty() && other->target_kind() == target.kind) fitting = other->name();
  }
  throw Error(experiment.file.string() + ": " + data::described(dataset) + " has " +
                  fields::kind_of(target).of_sample(target) + ", the task " +
                  experiment.task + " with the loss " + tasks::name_of(experiment.loss.type()) + " learns " +
                  std::string(task.target()) + ", which the last layer '" + experiment.model.output_layer().name +
                  "' gives; set task: " + fitting + ", or choose data with " + std::string(task.target()),
              ExitCode::usage);
}

void require_samples(const Experiment& experiment, const Dataset& dataset) {
  const ModelSpec& model = experiment.model;
  const Shape sample = sample_shape(dataset), &wanted = model.inputs.front().shape;
  if (wanted.empty() || wanted == sample) return;
  throw Error(model.file.string() + ": the model " + model.name + " takes samples of " + to_string(wanted) +
                  "; those of " + data::described(dataset) + " are " + to_string(sample),
              ExitCode::usage);
}

fields::Standardiser target_standardiser(const Dataset& dataset, DType type) {
  const TensorType rows{type, {1, dataset.fields.target().count()}};
  if (!fields::kind_of(dataset.fields.target()).is_scaled()) return {rows, {}, {}};
  return {rows, dataset.fields.target().mean, dataset.fields.target().stddev};
}

std::vector<double> in_data_units(std::span<const float> values, const std::vector<double>& mean,
                                  const std::vector<double>& stddev) {
  std::vector<double> result(values.begin(), values.end());
  for (std::size_t i = 0; !mean.empty() && i < result.size(); ++i) {
    result[i] = result[i] * stddev[i % mean.size()] + mean[i % mean.size()];
  }
  return result;
}

namespace {

template <class T, std::size_t count>
std::array<T, count> numbers_at(const FieldValues& field, int64_t item) {
  std::array<T, count> numbers = {};
  std::memcpy(numbers.data(), field.values.data() + static_cast<std::size_t>(item) * sizeof(numbers), sizeof(numbers));
  return numbers;
}

tasks::TrueBox object_at(const FieldValues& objects, int64_t item) {
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

std::vector<float> target_floats(std::span<const std::byte> bytes) {
  std::vector<float> result(bytes.size() / sizeof(float));
  if (!result.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

// The bytes of the targets of `rows` rows.
std::span<const std::byte> target_bytes(const Split& part, int64_t first, int64_t rows) {
  const FieldValues& field = part.fields.at(kTargetField);
  const std::size_t of_row = field.values.size() / static_cast<std::size_t>(field.type.shape.at(0));
  return std::span(field.values)
      .subspan(static_cast<std::size_t>(first) * of_row, static_cast<std::size_t>(rows) * of_row);
}

}  // namespace

std::vector<double> target_numbers(const Split& part, int64_t first, int64_t rows) {
  const std::span<const std::byte> bytes = target_bytes(part, first, rows);
  const DType type = part.fields.at(kTargetField).type.dtype;
  std::vector<double> result(bytes.size() / size_of(type));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = fields::element_of(type, bytes, i);
  return result;
}

RowsToScore::RowsToScore(const Dataset& dataset, const RowOutputs& rows) {
  const auto count = static_cast<int64_t>(rows.losses.size());
  if (fields::kind_of(dataset.fields.target()).is_scaled()) {
    take_numbers(dataset, rows, count);
    return;
  }
  targets_ = target_floats(dataset.test.singles.empty()
                               ? target_bytes(dataset.test, rows.first, count)
                               : target_bytes(dataset.test.singles[static_cast<std::size_t>(rows.first)], 0, 1));
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
                  .scale = dataset.fields.target().scale};
}

// Without the means: they are equal in both, and would round the differences.
void RowsToScore::take_numbers(const Dataset& dataset, const RowOutputs& rows, int64_t count) {
  const std::vector<double> none(dataset.fields.target().mean.size());
  predicted_numbers_ = in_data_units(rows.predictions, none, dataset.fields.target().stddev);
  target_numbers_ = target_numbers(dataset.test, rows.first, count);
  for (std::size_t i = 0; !none.empty() && i < target_numbers_.size(); ++i) {
    target_numbers_[i] -= dataset.fields.target().mean[i % none.size()];
  }
  rows_.outputs = dataset.fields.target().count();
  rows_.predicted_numbers = predicted_numbers_;
  rows_.target_numbers = target_numbers_;
}

}  // namespace gpunn::training
