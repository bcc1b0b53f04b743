#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ops/case.hpp"

namespace gpunn::ops {

// A shape as a user wrote it for `gpunn bench op`, taken apart: "128,64,32,32,64,3,3,pad=1".
struct Written {
  std::string op;
  std::string text;
  std::vector<int64_t> sizes;
  std::map<std::string, int64_t> options;  // those not yet taken
};

// Throws Error(usage) with the form that the op expects.
[[noreturn]] void bad(const Written& written, const std::string& expected);
// Returns the option's value and removes it.
int64_t take(Written& written, const std::string& option, int64_t otherwise);
int32_t take_int(Written& written, const std::string& option, int32_t otherwise);

// Inputs that all have the shape as written.
template <std::size_t inputs>
CaseSpec same_shape(Written& r) {
  return {.inputs = repeated(inputs, f32(r.sizes))};
}

}  // namespace gpunn::ops
