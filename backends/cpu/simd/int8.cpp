#include "simd/int8.hpp"

namespace gpunn::cpu::GPUNN_ISA {

// A number of less than 2^22 plus 3 * 2^22 has no bits for a fraction: it is rounded to the nearest, ties to even.
static constexpr float kNoFraction = 12582912.0F;
static constexpr float kMost = 255;
static constexpr float kFar = 4096;  // beyond what is stored; still exact with kNoFraction

static void multiply(const Int8Tile& t) {
  for (int i = 0; i < t.rows; ++i) {
    const uint8_t* a = t.a + i * t.a_stride;
    int32_t sums[Int8Tile::kColumns];
    for (int j = 0; j < Int8Tile::kColumns; ++j) sums[j] = t.first[j];
    for (int64_t p = 0; p < t.k; ++p) {
      const int32_t factor = a[p];
      const int8_t* b = t.b + p * Int8Tile::kColumns;
#pragma omp simd
      for (int j = 0; j < Int8Tile::kColumns; ++j) sums[j] += factor * b[j];
    }
    for (int j = 0; j < Int8Tile::kColumns; ++j) t.sums[i * Int8Tile::kColumns + j] = sums[j];
  }
}

static void accumulate(const uint8_t* x, int32_t zero_point, const int16_t* w, int32_t* sums, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sums[i] += (x[i] - zero_point) * w[i];
}

// `value` in units of the scale.
static inline float whole(float value, float zero_point, float low) {
  const float raised = value > -kFar ? value : -kFar;  // a NaN is far below
  const float cut = raised < kFar ? raised : kFar;
  const float rounded = (cut + kNoFraction) - kNoFraction + zero_point;
  const float above = rounded > low ? rounded : low;
  return above < kMost ? above : kMost;
}

static void store(const int32_t* sums, const Int8Store& how, const uint8_t* residual, uint8_t* y, int columns) {
  uint8_t added[Int8Tile::kColumns] = {};
  uint8_t result[Int8Tile::kColumns];
  if (residual != nullptr) {
    for (int j = 0; j < columns; ++j) added[j] = residual[j];
  }
  const float residual_factor = how.residual_factor, zero_residual = how.zero_residual;
  const float zero_point = how.zero_point, low = how.low;
  const float *factor = how.factor, *offset = how.offset;
#pragma omp simd
  for (int j = 0; j < Int8Tile::kColumns; ++j) {
    const float value = static_cast<float>(sums[j]) * factor[j] + offset[j] +
                        (static_cast<float>(added[j]) - zero_residual) * residual_factor;
    const float stored = value == value ? whole(value, zero_point, low) : 0;
    result[j] = static_cast<uint8_t>(static_cast<int32_t>(stored));
  }
  if (columns == Int8Tile::kColumns) {
    __builtin_memcpy(y, result, Int8Tile::kColumns);
  } else {
    for (int j = 0; j < columns; ++j) y[j] = result[j];
  }
}

static void scale(const int32_t* sums, const float* factor, const float* offset, float* y, int columns) {
#pragma omp simd
  for (int j = 0; j < columns; ++j) y[j] = static_cast<float>(sums[j]) * factor[j] + offset[j];
}

static void quantize(const float* x, float scale, float zero_point, uint8_t* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float stored = x[i] == x[i] ? whole(x[i] / scale, zero_point, 0) : 0;
    y[i] = static_cast<uint8_t>(static_cast<int32_t>(stored));
  }
}

static void dequantize(const uint8_t* x, float scale, float zero_point, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - zero_point) * scale;
}

constinit const Int8Kernels int8_kernels{accumulate, multiply, store, scale, quantize, dequantize};

}  // namespace gpunn::cpu::GPUNN_ISA
