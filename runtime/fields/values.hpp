#pragma once

#include <gpunn/field.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace gpunn::fields {

// Values of a field from an array: `shape` is [rows, ...].
template <class T>
FieldValues values_of(const std::vector<T>& numbers, DType dtype, Shape shape) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(numbers));
  FieldValues values;
  values.type = {dtype, std::move(shape)};
  values.values.assign(bytes.begin(), bytes.end());
  return values;
}

// A class for each row, i32[rows].
inline FieldValues class_values(const std::vector<int32_t>& classes) {
  return values_of(classes, DType::i32, {static_cast<int64_t>(classes.size())});
}
// Labels of each row, f32[rows, labels]: 1 if the row has the label, else 0.
inline FieldValues label_values(const std::vector<float>& flags, int64_t labels) {
  return values_of(flags, DType::f32, {static_cast<int64_t>(flags.size()) / labels, labels});
}
// Numbers of each row, f64[rows, columns].
inline FieldValues number_values(const std::vector<double>& numbers, int64_t columns) {
  return values_of(numbers, DType::f64, {static_cast<int64_t>(numbers.size()) / columns, columns});
}

// A copy of the values as numbers of type T, whatever their alignment in memory.
template <class T>
std::vector<T> numbers_in(const FieldValues& values) {
  const std::span<const std::byte> bytes = values.bytes();
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

// "row 3 (counted from 0)"
std::string row_text(int64_t row);

// Throws Error(usage) if the values are not of this type, or take other bytes: "the training targets: expected ...".
void require_type(const FieldValues& values, const TensorType& expected, const std::string& what);
// Throws Error(usage) with the row of the first number that is not finite in f32. `columns` is the size of a row.
void require_finite(DType type, std::span<const std::byte> values, int64_t columns, const std::string& what);

// "0", "1", ... for things without names.
std::vector<std::string> numbered(int64_t count);

}  // namespace gpunn::fields
