// How a tile of sums goes to bf16 rows, and bf16 rows to a tile's factors; for files that are compiled for AVX-512 with
// BF16.
#pragma once

#include <immintrin.h>

#include "half/half_tile.hpp"
#include "simd/lanes/vec.hpp"

namespace gpunn::cpu {
namespace {

inline void store_half(const float* c, int rows, int columns, const float* bias, bool relu, BFloat16* const* y) {
  for (int j = 0; j < columns; j += 16) {
    const int n = columns - j < 16 ? columns - j : 16;
    const auto lanes = static_cast<__mmask16>((1U << n) - 1U);
    const __m512 add = bias == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(lanes, bias + j);
    for (int i = 0; i < rows; ++i) {
      if (y[i] == nullptr) continue;
      __m512 value = _mm512_loadu_ps(c + i * HalfTile::kColumns + j);
      value = _mm512_add_ps(value, add);
      if (relu) value = value < _mm512_setzero_ps() ? _mm512_setzero_ps() : value;
      const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
      _mm256_mask_storeu_epi16(y[i] + j, lanes, rounded);
    }
  }
}

inline __m512i load_numbers(const BFloat16* p, int n) {
  const auto lanes = n >= 32 ? ~__mmask32{0} : static_cast<__mmask32>((1U << n) - 1U);
  return _mm512_maskz_loadu_epi16(lanes, p);
}

// Each pair is a number of 32 bits.
inline void pair_up_half(const BFloat16* from, int64_t stride, int64_t pairs, int64_t columns, BFloat16* to,
                         int64_t to_stride) {
  for (int64_t i = 0; i < pairs; ++i, from += 2 * stride, to += to_stride) {
    for (int64_t j = 0; j < columns; j += 16) {
      const auto lanes = static_cast<__mmask16>(columns - j < 16 ? (1U << (columns - j)) - 1U : 0xFFFFU);
      const __m512i first = _mm512_maskz_cvtepu16_epi32(lanes, _mm256_maskz_loadu_epi16(lanes, from + j));
      const __m512i second = _mm512_maskz_cvtepu16_epi32(lanes, _mm256_maskz_loadu_epi16(lanes, from + stride + j));
      _mm512_storeu_si512(to + 2 * j, _mm512_or_si512(first, _mm512_maskz_slli_epi32(lanes, second, 16)));
    }
  }
}

// Pairs are transposed as f32 numbers are.
inline void transpose_pairs_half(const BFloat16* from, int64_t from_stride, int count, int pairs, BFloat16* to,
                                 int64_t to_stride) {
  GPUNN_ISA::Vec rows[GPUNN_ISA::kLanes];
  for (int i = 0; i < 16; ++i) {
    rows[i] = _mm512_castsi512_ps(i < count ? load_numbers(from + i * from_stride, 2 * pairs) : _mm512_setzero_si512());
  }
  GPUNN_ISA::transpose(rows);
  for (int p = 0; p < pairs; ++p) GPUNN_ISA::store(reinterpret_cast<float*>(to + p * to_stride), rows[p]);
}

// Pairs of rows are vectors of 16 pairs, which are transposed as f32 numbers are.
inline void transpose_half(const BFloat16* from, int64_t from_stride, int count, BFloat16* to, int64_t to_stride) {
  alignas(64) static constexpr uint16_t kPairs[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                      8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i order = _mm512_load_si512(kPairs);
  GPUNN_ISA::Vec rows[GPUNN_ISA::kLanes];
#pragma GCC unroll 16
  for (int p = 0; p < 16; ++p) {
    const __m512i a = load_numbers(from + 2 * p * from_stride, count);
    const __m512i b = load_numbers(from + (2 * p + 1) * from_stride, count);
    rows[p] = _mm512_castsi512_ps(_mm512_permutex2var_epi16(a, order, b));
  }
  GPUNN_ISA::transpose(rows);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) GPUNN_ISA::store(reinterpret_cast<float*>(to + i * to_stride), rows[i]);
}

}  // namespace
}  // namespace gpunn::cpu
