// Arrays of the program that calls gpunn, and batches that it brings.
#include "data/rows/arrays.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "data/registry.hpp"
#include "fields/kind.hpp"
#include "fields/standardise.hpp"
#include "fields/values.hpp"

namespace gpunn::data {

namespace {

constexpr int64_t kMostArrayRows = std::numeric_limits<int32_t>::max();  // an index of a row is an i32

[[noreturn]] void refuse_arrays(const std::string& message) { throw Error(message, ExitCode::usage); }

TensorType row_type(const TensorType& samples) {
  return {samples.dtype, {samples.shape.begin() + 1, samples.shape.end()}};
}

void require_samples(const Split& part, const Field& input, const std::string& name) {
  const TensorType& type = part.samples;
  const bool known = type.dtype == DType::u8 || type.dtype == DType::f32 || type.dtype == DType::f64 ||
                     (type.dtype == DType::i32 && !fields::kind_of(input).is_normalised());
  if (!known || type.shape.size() < 2) {
    refuse_arrays("the " + name +
                  " samples: expected u8, f32 or f64, or i32 of tokens, [rows, features] or [rows, C, H, W], found " +
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

void require_values(const Split& part, const std::string& name) {
  const std::span<const std::byte> bytes = part.sample_bytes();
  if (bytes.size() != part.samples.bytes()) {
    refuse_arrays("the " + name + " samples " + to_string(part.samples) + " take " +
                  std::to_string(part.samples.bytes()) + " bytes, found " + std::to_string(bytes.size()));
  }
  fields::require_finite(part.samples.dtype, bytes, row_type(part.samples).elements(), name + " samples");
}

void require_part(const Split& part, const std::string& name, const Dataset& set) {
  require_samples(part, set.fields.input(), name);
  require_values(part, name);
  for (const Field& field : set.fields) {
    if (&field == &set.fields.input()) continue;
    const auto values = part.fields.find(field.name);
    if (values == part.fields.end() && field.role == Role::weight) continue;  // each row weighs 1
    fields::kind_of(field).require(field, values == part.fields.end() ? FieldValues() : values->second, part.rows(),
                                   name);
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
  if (set.fields.target().names.empty())
    refuse_arrays("a data set in memory needs at least one class, label or target column");
  std::set<std::string> names;
  for (const Field& field : set.fields) {
    if (!names.insert(field.name).second) refuse_arrays("two fields of the arrays are called '" + field.name + "'");
  }
  if (set.batches != nullptr) {
    require_samples(set.train, set.fields.input(), "training");
  } else {
    require_part(set.train, "training", set);
  }
  for (const auto& [part, name] : {std::pair{&set.validation, "validation"}, std::pair{&set.test, "test"}}) {
    if (part->rows() == 0) continue;
    require_part(*part, name, set);
    if (row_type(fields::device_type(part->samples)) == row_type(fields::device_type(set.train.samples))) continue;
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
