// Functions on shapes and constants that both constants/ and the importers of layers use.
#pragma once

#include <vector>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

// A constant with its dimensions in another order.
Constant transposed_constant(Call& call, const Constant& from, const std::vector<int64_t>& order);
// The steps from element to element of each dimension of a packed tensor.
Shape strides_of(const Shape& shape);
// The place among elements of `from` of element i of `to`, to which it broadcasts.
int64_t broadcast_place(int64_t i, const Shape& to, const Shape& from);
// The shape that both broadcast to; throws Unsupported where there is none.
Shape broadcast_shape(const Shape& a, const Shape& b);

}  // namespace gpunn::interchange
