// The inner kernels of tensors in eight bits.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

// sums[i][j] = first[j] + the sum over p of a[i * a_stride + p] * b[p, j]. b is packed: [p / group][j][p % group], and
// 0 behind k. a is readable up to a multiple of the group.
struct Int8Tile {
  static constexpr int kMostRows = 32;
  static constexpr int kVectorRows = 12;  // whose sums fit the vector registers
  static constexpr int kColumns = 32;

  int64_t k;
  const uint8_t* a;
  int64_t a_stride;
  const int8_t* b;
  const int32_t* first;  // [kColumns]
  int32_t* sums;         // [rows][kColumns]
  int rows;
};

// Stores a row of sums: y = round(sum * factor + offset + (residual - zero_residual) * residual_factor) + zero_point,
// cut to [low, 255] behind the sum with zero_point; a NaN is 0.
struct Int8Store {
  const float* factor;    // [Int8Tile::kColumns]
  const float* offset;    // likewise
  float residual_factor;  // 0: there is none
  float zero_residual;
  float zero_point;
  float low;
};

struct Int8Kernels {
  // sums[i] += (x[i] - zero_point) * w[i]
  void (*accumulate)(const uint8_t* x, int32_t zero_point, const int16_t* w, int32_t* sums, int64_t n);
  void (*multiply)(const Int8Tile& tile);  // of group 1
  void (*store)(const int32_t* sums, const Int8Store& how, const uint8_t* residual, uint8_t* y, int columns);
  // y = sum * factor + offset
  void (*scale)(const int32_t* sums, const float* factor, const float* offset, float* y, int columns);
  void (*quantize)(const float* x, float scale, float zero_point, uint8_t* y, int64_t n);
  void (*dequantize)(const uint8_t* x, float scale, float zero_point, float* y, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(Int8Kernels, int8_kernels);

}  // namespace gpunn::cpu
