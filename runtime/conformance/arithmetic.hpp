#pragma once

#include <string>

namespace gpunn::conformance {

// What this thread's arithmetic is not as C has it from the start: subnormal numbers flushed to zero, another rounding.
// It is put right. Empty: nothing.
std::string mend_arithmetic();

}  // namespace gpunn::conformance
