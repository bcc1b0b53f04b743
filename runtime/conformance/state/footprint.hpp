#pragma once

#include <cstdint>
#include <string>

#include "execution/backend.hpp"

namespace gpunn::conformance {

// What memory this process and the device hold.
struct Footprint {
  int64_t heap = 0;    // bytes that were allocated and not given back
  int64_t mapped = 0;  // bytes of address space
  int64_t device = 0;  // bytes in use, by whomever
  int64_t files = 0;   // descriptors that are open
};

Footprint footprint_of(execution::Backend& backend);

// What has grown by so much that `times` of something must have left it behind: "heap memory by 48 bytes each time".
// Empty: nothing.
std::string growth(const Footprint& before, const Footprint& after, int64_t times);

}  // namespace gpunn::conformance
