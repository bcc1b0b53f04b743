#pragma once

#include <cstdint>
#include <string>

#include "graph/expressions.hpp"

namespace gpunn::ops {

using graph::ValueId;

// The activation that composites carry as an attribute, taken apart into core ops.

// activation(x + bias).
ValueId bias_and_activation(graph::Expressions& e, ValueId x, ValueId bias, int32_t activation);

// dy times the activation's derivative, from the activation's output y.
ValueId activation_backward(graph::Expressions& e, ValueId dy, ValueId y, int32_t activation);

}  // namespace gpunn::ops
