#include "products/strided_product.hpp"

#include <algorithm>

#include "threads/grain.hpp"

namespace gpunn::cpu {
namespace {

// How a's element (i, p) is found: at i * i_step + p * p_step, of which one is 1.
struct LeftFactor {
  const float* data;
  int64_t stride;
  int64_t i_step;
  void (*tile)(const GemmTile& tile);
};

void run_tiles(const GemmKernels& kernels, const ProductSize& size, const LeftFactor& a, const RightFactor& b, float* c,
               int64_t c_stride, bool accumulate) {
  const int64_t tile_rows = even_block(size.m, kernels.tile_rows), tile_columns = kernels.tile_columns;
  GemmTile tile{};
  tile.k = size.k;
  tile.a_stride = a.stride;
  tile.b_stride = b.stride;
  tile.c_row = c_stride;
  tile.c_column = 1;
  tile.accumulate = accumulate;
  for (int64_t j = 0; j < size.n; j += tile_columns) {
    tile.b = b.data + j / tile_columns * b.panel;
    tile.columns = static_cast<int>(std::min(tile_columns, size.n - j));
    for (int64_t i = 0; i < size.m; i += tile_rows) {
      tile.a = a.data + i * a.i_step;
      tile.rows = static_cast<int>(std::min(tile_rows, size.m - i));
      tile.c = c + i * c_stride + j;
      a.tile(tile);
    }
  }
}

}  // namespace

RightFactor right_factor(const GemmKernels& kernels, const Rows& x) { return {x.data, x.stride, kernels.tile_columns}; }

int64_t packed_floats(const GemmKernels& kernels, int64_t count, int64_t width) {
  return round_up(count, kernels.tile_columns) * width;
}

RightFactor pack_transposed(const GemmKernels& kernels, const Rows& x, int64_t count, int64_t width, float* packed) {
  const int64_t columns = kernels.tile_columns;
  for (int64_t j = 0; j < count; j += columns) {
    kernels.pack(x.data + j * x.stride, x.stride, 1, std::min(columns, count - j), columns, width, packed + j * width);
  }
  return {packed, columns, columns * width};
}

void multiply(const GemmKernels& kernels, const ProductSize& size, const Rows& a, const RightFactor& b, float* c,
              int64_t c_stride, bool accumulate) {
  run_tiles(kernels, size, {a.data, a.stride, a.stride, kernels.rows_tile}, b, c, c_stride, accumulate);
}

void multiply_transposed(const GemmKernels& kernels, const ProductSize& size, const Rows& a, const RightFactor& b,
                         float* c, int64_t c_stride, bool accumulate) {
  run_tiles(kernels, size, {a.data, a.stride, 1, kernels.tile}, b, c, c_stride, accumulate);
}

}  // namespace gpunn::cpu
