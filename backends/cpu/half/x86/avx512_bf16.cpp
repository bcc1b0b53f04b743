#include <cstring>

#include <immintrin.h>

#include "half/x86/half_store.hpp"

namespace gpunn::cpu {
namespace {

void nothing() {}

template <int rows>
void multiply_rows(const HalfTile& t, int first) {
  __m512 sum[rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    const float* c = t.c + (first + i) * HalfTile::kColumns;
    sum[i][0] = t.accumulate ? _mm512_loadu_ps(c) : _mm512_setzero_ps();
    sum[i][1] = t.accumulate ? _mm512_loadu_ps(c + 16) : _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < t.k; p += 2) {
    const BFloat16* b = t.b + p * HalfTile::kColumns;
    const auto left = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b));
    const auto right = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + HalfTile::kColumns));
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      int pair = 0;
      std::memcpy(&pair, t.a + (first + i) * t.a_stride + p, sizeof(pair));
      const auto factor = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      sum[i][0] = _mm512_dpbf16_ps(sum[i][0], factor, left);
      sum[i][1] = _mm512_dpbf16_ps(sum[i][1], factor, right);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    float* c = t.c + (first + i) * HalfTile::kColumns;
    _mm512_storeu_ps(c, sum[i][0]);
    _mm512_storeu_ps(c + 16, sum[i][1]);
  }
}

void multiply_pairs(const HalfTile& t) {
  for (int i = 0; i < t.rows; i += 8) multiply_rows<8>(t, i);
}

}  // namespace

extern const HalfTileKernels avx512_bf16_tiles;
const HalfTileKernels avx512_bf16_tiles{"avx512_bf16", nothing,         nothing,       multiply_pairs,
                                        store_half,    interleave_half, transpose_half};

}  // namespace gpunn::cpu
