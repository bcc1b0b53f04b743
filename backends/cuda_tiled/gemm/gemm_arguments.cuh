// The arguments of the kernels of the GEMM ladder, and their epilogue.
#pragma once

#include <cstdint>

#include "epilogue.cuh"
#include "gemm/mask_epilogue.cuh"

namespace gpunn::cuda_tiled {

struct GemmArguments {
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;  // of a kernel that splits k over the grid: partial sums [splits, m, n]
  Epilogue epilogue;
  int m = 0;
  int n = 0;
  int k = 0;
  int k_of_split = 0;  // how much of k a block takes
  MaskEpilogue mask;   // of kernels that have it (masked.hpp), in place of the other
};

// Stores four neighbours of a row of y, or those of them that exist.
__device__ __forceinline__ void store_quad(float* y, const GemmArguments& g, int row, int column, float4 quad) {
  float* const to = y + int64_t{row} * g.n + column;
  if (g.n % 4 == 0) {
    if (column < g.n) *reinterpret_cast<float4*>(to) = quad;
  } else {
    if (column < g.n) to[0] = quad.x;
    if (column + 1 < g.n) to[1] = quad.y;
    if (column + 2 < g.n) to[2] = quad.z;
    if (column + 3 < g.n) to[3] = quad.w;
  }
}

// The bias of four neighbours; zeros if there is none.
__device__ __forceinline__ float4 bias_of_quad(const GemmArguments& g, int column) {
  float4 bias = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  if (g.epilogue.bias == nullptr) return bias;
  if (column < g.n) bias.x = g.epilogue.bias[column];
  if (column + 1 < g.n) bias.y = g.epilogue.bias[column + 1];
  if (column + 2 < g.n) bias.z = g.epilogue.bias[column + 2];
  if (column + 3 < g.n) bias.w = g.epilogue.bias[column + 3];
  return bias;
}

__device__ __forceinline__ float4 finish_quad(const Epilogue& epilogue, const float* sums, const float4& bias) {
  float4 quad = make_float4(sums[0] + bias.x, sums[1] + bias.y, sums[2] + bias.z, sums[3] + bias.w);
  if (epilogue.relu) {
    quad.x = quad.x < 0.0F ? 0.0F : quad.x;
    quad.y = quad.y < 0.0F ? 0.0F : quad.y;
    quad.z = quad.z < 0.0F ? 0.0F : quad.z;
    quad.w = quad.w < 0.0F ? 0.0F : quad.w;
  }
  return quad;
}

}  // namespace gpunn::cuda_tiled
