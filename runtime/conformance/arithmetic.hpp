#pragma once

#include <string>

namespace gpunn::conformance {

// Checks that this thread's arithmetic is in C's default state: no flushing of subnormal numbers, rounding to nearest.
// Restores that state and returns the difference. Empty: none.
std::string mend_arithmetic();

}  // namespace gpunn::conformance
