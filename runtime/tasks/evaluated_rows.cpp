#include "tasks/evaluated_rows.hpp"

#include <cstring>

#include "fields/standardise.hpp"

namespace gpunn::tasks {

std::span<const std::byte> EvaluatedRows::bytes_of(const std::string& field) const {
  const FieldValues& values = split().fields.at(field);
  const std::size_t size = values.bytes().size() / static_cast<std::size_t>(values.type.shape.at(0));
  return values.bytes().subspan(static_cast<std::size_t>(first_in_split()) * size, count() * size);
}

std::vector<float> EvaluatedRows::floats_of(const std::string& field) const {
  const std::span<const std::byte> bytes = bytes_of(field);
  std::vector<float> numbers(bytes.size() / sizeof(float));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

std::vector<double> EvaluatedRows::numbers_of(const std::string& field) const {
  const std::span<const std::byte> bytes = bytes_of(field);
  const DType type = split().fields.at(field).type.dtype;
  std::vector<double> numbers(bytes.size() / size_of(type));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = fields::element_of(type, bytes, i);
  return numbers;
}

}  // namespace gpunn::tasks
