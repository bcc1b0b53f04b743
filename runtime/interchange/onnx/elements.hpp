#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "interchange/onnx/file_model.hpp"

namespace gpunn::interchange {

// Bytes of an element in raw data, where two of four bits share one; 0: a type that is not read.
std::size_t bytes_of(Element element);
// Bytes of so many elements in raw data.
uint64_t stored_bytes(Element element, int64_t count);

// The number of elements; nothing where a size is negative or the tensor would be larger than any memory.
std::optional<int64_t> checked_count(const Shape& shape);

// A constant of little-endian bytes, as many as its type and shape want.
Constant constant_of(Element element, Shape shape, std::span<const std::byte> bytes);

// Of single values.
Constant floats_constant(Shape shape, std::vector<float> values);
Constant sizes_constant(Shape shape, std::vector<Size> values);
Constant integers_constant(const std::vector<int64_t>& values);  // of one dimension

// Whether floats that are added as a mask are -inf in all of a row, of which a softmax behind them would make NaN.
bool hides_a_row(const Constant& mask);

}  // namespace gpunn::interchange
