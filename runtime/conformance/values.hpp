#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "conformance/oracle.hpp"

namespace gpunn::conformance {

// Test data that depends on the seed and the case's name alone, so that a case can be repeated by itself.
class Random {
 public:
  Random(uint64_t seed, std::string_view stream);
  double uniform(double low, double high);
  int64_t below(int64_t n);  // 0..n-1

 private:
  uint32_t word();
  uint64_t seed_, stream_, position_ = 0;
};

// The value of the type that is nearest, or for an integer type the one towards zero.
double rounded(double value, DType type);

// The tensor as it lies in memory, and back. Throws Error for bf16 and f16, which no op of the catalogue has yet.
std::vector<std::byte> encode(const OracleTensor& tensor);
OracleTensor decode(const TensorType& type, std::span<const std::byte> bytes);

}  // namespace gpunn::conformance
