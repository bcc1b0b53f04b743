// CUMSUM along lines of [outer][size][inner], and the triangles of TRIL.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct CumulativeSum {
  int64_t outer = 0, size = 0, inner = 0;
  bool exclusive = false, reverse = false;

  constexpr int64_t lines() const { return outer * inner; }
  // Of the first element in the order of the sum; the next is `step` elements further.
  constexpr int64_t first(int64_t line) const {
    return line / inner * size * inner + line % inner + (reverse ? (size - 1) * inner : 0);
  }
  constexpr int64_t step() const { return reverse ? -inner : inner; }
};

inline CumulativeSum cumulative_sum_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_cumsum_attrs>();
  const gpunn_tensor& x = desc.input(0);
  CumulativeSum sum{.outer = 1,
                    .size = x.dim[attrs.axis],
                    .inner = size_from(x, attrs.axis + 1),
                    .exclusive = attrs.exclusive != 0,
                    .reverse = attrs.reverse != 0};
  for (int32_t i = 0; i < attrs.axis; ++i) sum.outer *= x.dim[i];
  return sum;
}

struct Triangle {
  int64_t matrices = 0, rows = 0, columns = 0, diagonal = 0;
  bool upper = false;

  constexpr int64_t elements() const { return matrices * rows * columns; }
  constexpr bool keeps(int64_t row, int64_t column) const {
    return upper ? column - row >= diagonal : column - row <= diagonal;
  }
};

inline Triangle triangle_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_tril_attrs>();
  const gpunn_tensor& x = desc.input(0);
  Triangle triangle{
      .matrices = 1, .rows = x.dim[x.rank - 2], .columns = x.dim[x.rank - 1], .diagonal = 0, .upper = attrs.upper != 0};
  triangle.diagonal = std::clamp(attrs.diagonal, -triangle.rows, triangle.columns);  // beyond, the same stays
  for (int32_t i = 0; i < x.rank - 2; ++i) triangle.matrices *= x.dim[i];
  return triangle;
}

}  // namespace gpunn::backends
