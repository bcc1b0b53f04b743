// Variables as the numbers that they hold.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "execution/variables.hpp"
#include "training/session.hpp"

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

// The sum over the ranks; nullptr: there is one.
inline Totals over_ranks(distributed::Team* team, const Totals& own) {
  if (team == nullptr) return own;
  const std::vector<double> sums = team->sums({own.loss, own.correct, own.correct5, own.count});
  return {.loss = sums[0], .correct = sums[1], .correct5 = sums[2], .count = sums[3]};
}

inline Totals read_totals(const execution::Variables& variables, const char* name) {
  double values[4];
  const std::vector<std::byte> bytes = variables.read(name);
  std::memcpy(values, bytes.data(), sizeof(values));
  return {.loss = values[0], .correct = values[1], .correct5 = values[2], .count = values[3]};
}

}  // namespace gpunn::training
