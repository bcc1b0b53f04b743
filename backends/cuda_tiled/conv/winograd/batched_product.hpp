// The batched matrix product of Winograd convolutions: d[share][batch][m][n] = sum of a[batch][k][m] b[batch][k][n]
// over the share's k. Both factors have the layout in which a thread block reads them.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "conv/tile_choice.hpp"

namespace gpunn::cuda_tiled::conv {

struct BatchedProduct {
  int batch;
  int m;
  int n;
  int k;
  int a_line;  // numbers from one k to the next: m, n and n rounded up to a multiple of 4
  int b_line;
  int d_line;        // numbers from one m to the next
  int64_t a_matrix;  // numbers from one matrix to the next
  int64_t b_matrix;
  int64_t d_matrix;
  TileChoice tile;
};

TileChoice batched_product_tile(int batch, int m, int n, int k, int multiprocessors, int most_shares);
void batched_product(const BatchedProduct& product, const float* a, const float* b, float* d, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled::conv
