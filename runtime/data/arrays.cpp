// Arrays of the program that calls gpunn, and batches that it brings.
#include "data/arrays.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "data/registry.hpp"
#include "data/standardise.hpp"

namespace gpunn::data {

namespace {

constexpr int64_t kMostArrayRows = std::numeric_limits<int32_t>::max();  // an index of a row is an i32

[[noreturn]] void refuse_arrays(const std::string& message) { throw Error(message, ExitCode::usage); }

std::string row_text(std::size_t row) { return "row " + std::to_string(row) + " (counted from 0)"; }

TensorType row_type(const TensorType& samples) {
  return {samples.dtype, {samples.shape.begin() + 1, samples.shape.end()}};
}

void require_samples(const Split& part, const std::string& name) {
  const TensorType& type = part.samples;
  const bool known = type.dtype == DType::u8 || type.dtype == DType::f32 || type.dtype == DType::f64;
  if (!known || type.shape.size() < 2) {
    refuse_arrays("the " + name + " samples: expected u8, f32 or f64 of [rows, features] or [rows, C, H, W], found " +
                  to_string(type));
  }
  if (std::ranges::any_of(type.shape, [](int64_t size) { return size < 1; })) {
    refuse_arrays("the " + name + " samples are empty: " + to_string(type));
  }
  if (type.shape.front() > kMostArrayRows) {
    refuse_arrays("the " + name + " samples are " + to_string(type) + "; at most " + std::to_string(kMostArrayRows) +
                  " rows can be told apart");
  }
}

template <class T>
void require_finite_numbers(std::span<const std::byte> bytes, std::size_t columns, const std::string& what) {
  const std::size_t count = bytes.size() / sizeof(T);
  constexpr std::size_t kBlock = 4096;
  std::array<T, kBlock> block{};
  for (std::size_t first = 0; first < count; first += kBlock) {
    const std::size_t here = std::min(kBlock, count - first);
    std::memcpy(block.data(), bytes.data() + first * sizeof(T), here * sizeof(T));
    float zero = 0;  // NaN as soon as a value is NaN, infinite, or beyond the range of f32
    for (std::size_t i = 0; i < here; ++i) zero += static_cast<float>(block[i]) * 0.0F;
    if (zero == 0) continue;
    for (std::size_t i = 0; i < here; ++i) {
      if (std::isfinite(static_cast<float>(block[i]))) continue;
      refuse_arrays("the " + what + " hold " + non_finite_text(static_cast<double>(block[i])) + " in " +
                    row_text((first + i) / columns) + "; remove such rows or replace the value");
    }
  }
}

void require_finite(DType type, std::span<const std::byte> bytes, std::size_t columns, const std::string& what) {
  if (type == DType::f64) return require_finite_numbers<double>(bytes, columns, what);
  if (type == DType::f32) require_finite_numbers<float>(bytes, columns, what);
}

void require_values(const Split& part, const std::string& name) {
  const std::span<const std::byte> bytes = part.sample_bytes();
  if (bytes.size() != part.samples.bytes()) {
    refuse_arrays("the " + name + " samples " + to_string(part.samples) + " take " +
                  std::to_string(part.samples.bytes()) + " bytes, found " + std::to_string(bytes.size()));
  }
  const auto columns = static_cast<std::size_t>(row_type(part.samples).elements());
  require_finite(part.samples.dtype, bytes, columns, name + " samples");
}

void require_labels(const Split& part, const std::string& name, int64_t classes) {
  if (static_cast<int64_t>(part.labels.size()) != part.rows()) {
    refuse_arrays("the " + name + " part has " + std::to_string(part.rows()) + " samples and " +
                  std::to_string(part.labels.size()) + " labels; there must be one for each");
  }
  const auto bad = std::ranges::find_if(part.labels, [&](int32_t label) { return label < 0 || label >= classes; });
  if (bad == part.labels.end()) return;
  refuse_arrays("the " + name + " label of " + row_text(static_cast<std::size_t>(bad - part.labels.begin())) + " is " +
                std::to_string(*bad) + "; with " + std::to_string(classes) + " classes labels are 0 to " +
                std::to_string(classes - 1));
}

void require_target_field(const Split& part, const std::string& name, const Dataset& set) {
  const auto field = part.fields.find(kTargetField);
  const bool numbers = set.targets == TargetKind::numbers;
  const bool wide = numbers && field != part.fields.end() && field->second.type.dtype == DType::f64;
  const TensorType expected{wide ? DType::f64 : DType::f32, {part.rows(), set.classes}};
  if (field == part.fields.end() || !(field->second.type == expected) ||
      field->second.values.size() != expected.bytes()) {
    refuse_arrays("the " + name + " targets: expected " + to_string(expected) + ", found " +
                  (field == part.fields.end() ? "none" : to_string(field->second.type)));
  }
  require_finite(expected.dtype, field->second.values, static_cast<std::size_t>(set.classes), name + " targets");
  if (set.targets != TargetKind::labels) return;
  for (std::size_t i = 0; i < field->second.values.size() / sizeof(float); ++i) {
    float value = 0;
    std::memcpy(&value, field->second.values.data() + i * sizeof(float), sizeof(float));
    if (value == 0 || value == 1) continue;
    refuse_arrays("the " + name + " labels of " + row_text(i / static_cast<std::size_t>(set.classes)) + " hold " +
                  std::to_string(value) + "; each must be 0 or 1");
  }
}

void require_part(const Split& part, const std::string& name, const Dataset& set) {
  require_samples(part, name);
  require_values(part, name);
  if (set.targets == TargetKind::one_class) {
    require_labels(part, name, set.classes);
  } else {
    require_target_field(part, name, set);
  }
}

Dataset not_here(const DataConfig&) {
  throw Error(
      "the data set 'arrays' is memory of the program that trained this model, and no file has it. Give the arrays "
      "again from a program: in Python, gpunn.Network.load(run).fit(x, y) or .evaluate(x, y); in C++, "
      "resume(run, {}, dataset). Or say with --set data.dataset=... which other data to use",
      ExitCode::missing);
}

}  // namespace

void require_arrays(const Dataset& set) {
  if (set.name != kArrays) refuse_arrays("a data set in memory is called '" + std::string(kArrays) + "'");
  if (set.classes < 1) refuse_arrays("a data set in memory needs at least one class, label or target column");
  if (set.batches != nullptr) {
    require_samples(set.train, "training");
  } else {
    require_part(set.train, "training", set);
  }
  for (const auto& [part, name] : {std::pair{&set.validation, "validation"}, std::pair{&set.test, "test"}}) {
    if (part->rows() == 0) continue;
    require_part(*part, name, set);
    if (row_type(device_type(part->samples)) == row_type(device_type(set.train.samples))) continue;
    refuse_arrays("training samples are " + to_string(set.train.samples) + " and " + name + " samples " +
                  to_string(part->samples) + "; they may differ in the number of rows alone");
  }
}

DatasetRow arrays_row() {
  DatasetRow row;
  row.name = kArrays;
  row.description = "arrays in the memory of a program that calls gpunn, as fit(x, y) in Python";
  row.origin = Origin::memory;
  row.make = not_here;
  return row;
}

}  // namespace gpunn::data
