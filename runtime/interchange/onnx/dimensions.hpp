// Functions of values along some of their dimensions, wherever the batch is. They take and give values as the file has
// them. All throw Unsupported where they would compute with different rows of the batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

// The product of the last two dimensions; others broadcast. One dimension is a row of a, a column of b.
Value matrix_product_of(Call& call, const Value& a, const Value& b);

// Over dimensions: "mean", "sum", "max", "min" or "prod", as the layer `reduce` has them. No dimensions: x.
Value reduced(Call& call, const Value& x, const std::string& function, const std::vector<int64_t>& dimensions,
              bool keep);

// A layer that works along one dimension, which its key `dimension` names, and gives `size` entries of it.
Value along(Call& call, const std::string& layer, const Value& x, std::size_t dimension, int64_t size, Keys keys = {});
// The entries of a dimension at these places.
Value gathered(Call& call, const Value& x, std::size_t dimension, const std::vector<int64_t>& places);
// `count` neighbours of a dimension.
Value sliced(Call& call, const Value& x, std::size_t dimension, int64_t start, int64_t count);
// With zeros in front of and behind each dimension.
Value padded(Call& call, const Value& x, const std::vector<int64_t>& before, const std::vector<int64_t>& behind);
// Sizes of 1 repeated.
Value expanded(Call& call, const Value& x, const Sizes& to);
// Data and constants one behind the other.
Value joined(Call& call, const std::vector<Value>& parts, std::size_t dimension);
// A layer "softmax" or "log_softmax" over a dimension.
Value softmax_over(Call& call, const char* layer, const Value& x, std::size_t dimension);

// Which of `rank` dimensions; negative ones count from the end.
std::size_t sound_dimension(int64_t given, std::size_t rank);
// Sorted. Throws Unsupported where one is named twice.
std::vector<int64_t> sound_dimensions(std::vector<int64_t> given, std::size_t rank);

}  // namespace gpunn::interchange
