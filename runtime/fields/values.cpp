#include "fields/values.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include "fields/standardise.hpp"

namespace gpunn::fields {

namespace {

template <class T>
void require_finite_numbers(std::span<const std::byte> bytes, int64_t columns, const std::string& what) {
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
      throw Error("the " + what + " hold " + non_finite_text(static_cast<double>(block[i])) + " in " +
                      row_text(static_cast<int64_t>(first + i) / columns) + "; remove such rows or replace the value",
                  ExitCode::usage);
    }
  }
}

}  // namespace

std::string row_text(int64_t row) { return "row " + std::to_string(row) + " (counted from 0)"; }

void require_type(const FieldValues& values, const TensorType& expected, const std::string& what) {
  if (values.type == expected && values.bytes().size() == expected.bytes()) return;
  throw Error("the " + what + ": expected " + to_string(expected) + ", found " +
                  (values.bytes().empty() ? "none" : to_string(values.type)),
              ExitCode::usage);
}

void require_finite(DType type, std::span<const std::byte> values, int64_t columns, const std::string& what) {
  if (type == DType::f64) return require_finite_numbers<double>(values, columns, what);
  if (type == DType::f32) require_finite_numbers<float>(values, columns, what);
}

std::vector<std::string> numbered(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace gpunn::fields
