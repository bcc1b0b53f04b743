// How a tile of sums goes to bf16 rows; for files that are compiled for AVX-512 with BF16.
#pragma once

#include <immintrin.h>

#include "half/half_tile.hpp"

namespace gpunn::cpu {
namespace {

void store_half(const float* c, int rows, int columns, const float* bias, bool relu, BFloat16* const* y) {
  for (int j = 0; j < columns; j += 16) {
    const int n = columns - j < 16 ? columns - j : 16;
    const auto lanes = static_cast<__mmask16>((1U << n) - 1U);
    const __m512 add = bias == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(lanes, bias + j);
    for (int i = 0; i < rows; ++i) {
      __m512 value = _mm512_loadu_ps(c + i * HalfTile::kColumns + j);
      value = _mm512_add_ps(value, add);
      if (relu) value = value < _mm512_setzero_ps() ? _mm512_setzero_ps() : value;
      const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
      _mm256_mask_storeu_epi16(y[i] + j, lanes, rounded);
    }
  }
}

}  // namespace
}  // namespace gpunn::cpu
