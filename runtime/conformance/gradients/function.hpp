#pragma once

#include "conformance/gradients/gradient_case.hpp"

namespace gpunn::conformance {

// One op of the oracle as a function.
Function oracle_function(int32_t op, graph::Attributes attrs = {});

// Values at least `gap` apart from each other and from 0, in a mixed order: differences do not cross a kink of ReLU or
// a tie of a maximum. For up to 10007 elements.
Generator apart(double gap = 0.01);

}  // namespace gpunn::conformance
