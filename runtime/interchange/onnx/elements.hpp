#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "interchange/onnx/file_model.hpp"

namespace gpunn::interchange {

// Bytes of so many elements in raw data, several of which may share one; 0: a type that is not read.
uint64_t bytes_of(Element element, int64_t count);

// The number of elements; nothing where a size is negative or the tensor would be larger than any memory.
std::optional<int64_t> checked_count(const Shape& shape);

// A constant of little-endian bytes, as many as its type and shape want. Elements of less than a byte come from its
// lowest bits on.
Constant constant_of(Element element, Shape shape, std::span<const std::byte> bytes);

// Of single values. f64 are rounded to f32 for layers, all others have to be numbers of their type.
Constant numbers_constant(Element element, Shape shape, std::vector<double> values);
Constant integers_constant(Element element, Shape shape, std::vector<Size> values);
Constant floats_constant(Shape shape, std::vector<float> values);
Constant sizes_constant(Shape shape, std::vector<Size> values);
Constant integers_constant(const std::vector<int64_t>& values);  // of one dimension

// Whether floats that are added as a mask are -inf in all of a row, of which a softmax behind them would make NaN.
bool hides_a_row(const Constant& mask);

}  // namespace gpunn::interchange
