#pragma once

#include <gpunn/error.hpp>
#include <gpunn/tensor_type.hpp>

#include <span>
#include <string>
#include <string_view>

namespace gpunn::graph {

// Checks that shape inference shares. Each throws Error with what was expected and what was found.

inline void require(bool condition, const std::string& message) {
  if (!condition) throw Error(message);
}

inline void require_dtype(const TensorType& type, DType dtype, std::string_view what) {
  require(type.dtype == dtype,
          std::string(what) + " must be " + std::string(name_of(dtype)) + ", is " + to_string(type));
}

inline void require_rank(const TensorType& type, std::size_t rank, std::string_view what) {
  require(type.shape.size() == rank,
          std::string(what) + " must have " + std::to_string(rank) + " dimensions, is " + to_string(type));
}

inline void require_f32(const TensorType& type, std::size_t rank, std::string_view what) {
  require_dtype(type, DType::f32, what);
  require_rank(type, rank, what);
}

inline void require_scalar(const TensorType& type, DType dtype, std::string_view what) {
  require_dtype(type, dtype, what);
  require_rank(type, 0, what);
}

inline void require_same(const TensorType& a, const TensorType& b, std::string_view what_a, std::string_view what_b) {
  require(a == b, std::string(what_a) + " and " + std::string(what_b) + " must be of one type and shape, are " +
                      to_string(a) + " and " + to_string(b));
}

// "5x5", of the two numbers that an attribute has for rows and columns.
inline std::string pair_text(const int32_t (&values)[2]) {
  return std::to_string(values[0]) + "x" + std::to_string(values[1]);
}

// Labels: i32 [N] for the rows of x.
inline void require_labels(const TensorType& label, int64_t rows) {
  require_dtype(label, DType::i32, "label");
  require_rank(label, 1, "label");
  require(label.shape[0] == rows,
          "label " + to_string(label) + " must have one entry a row, there are " + std::to_string(rows) + " rows");
}

}  // namespace gpunn::graph
