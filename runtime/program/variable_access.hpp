// Variables as the numbers that they hold.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "execution/steps/variables.hpp"

namespace gpunn::training {

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// A tensor's bytes as numbers.
template <class T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// A variable of f32 or i32 as f32.
inline std::vector<float> read_floats(const execution::Variables& variables, const std::string& name) {
  const std::vector<std::byte> bytes = variables.read(name);
  if (variables.type(name).dtype != DType::i32) return values_of<float>(bytes);
  const std::vector<int32_t> numbers = values_of<int32_t>(bytes);
  return {numbers.begin(), numbers.end()};
}

template <class T>
T read_scalar(const execution::Variables& variables, const char* name) {
  const std::vector<std::byte> bytes = variables.read(name);
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

template <class T>
void write_scalar(execution::Variables& variables, const char* name, T value) {
  variables.write(name, std::as_bytes(std::span(&value, 1)));
}

}  // namespace gpunn::training
