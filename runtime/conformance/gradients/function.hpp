#pragma once

#include "conformance/gradients/gradient_case.hpp"

namespace gpunn::conformance {

// One op of the reference as a function.
Function reference_function(int32_t op, graph::Attributes attrs = {});

}  // namespace gpunn::conformance
