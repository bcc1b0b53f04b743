#include <cstring>

#include <immintrin.h>

#include "half/x86/half_store.hpp"

namespace gpunn::cpu {
namespace {

void begin_nothing(int /*depth*/) {}
void end_nothing() {}

template <int rows, int halves>
void multiply_rows(const HalfTile& t, int first) {
  __m512 sum[rows][halves];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    const float* c = t.c + (first + i) * HalfTile::kColumns;
#pragma GCC unroll 2
    for (int j = 0; j < halves; ++j) sum[i][j] = t.accumulate ? _mm512_loadu_ps(c + 16 * j) : _mm512_setzero_ps();
  }
  int64_t pairs = 0;  // of rows of b
  for (int64_t s = 0; s < t.step_count; ++s) {
    const BFloat16* a = t.a + first * t.a_stride + t.steps[s];
    for (int p = 0; p < t.depth; p += 2, ++pairs) {
      __m512bh b[halves];
      b[0] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(t.b + pairs * t.b_stride));
      if constexpr (halves > 1) b[1] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(t.b_right + pairs * t.b_stride));
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        int pair = 0;
        std::memcpy(&pair, a + i * t.a_stride + p, sizeof(pair));
        const auto factor = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 2
        for (int j = 0; j < halves; ++j) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], factor, b[j]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
    float* c = t.c + (first + i) * HalfTile::kColumns;
#pragma GCC unroll 2
    for (int j = 0; j < halves; ++j) _mm512_storeu_ps(c + 16 * j, sum[i][j]);
  }
}

void multiply_pairs(const HalfTile& t) {
  if (t.columns > 16) {
    for (int i = 0; i < t.rows; i += 8) multiply_rows<8, 2>(t, i);
  } else {
    for (int i = 0; i < t.rows; i += 16) multiply_rows<16, 1>(t, i);
  }
}

}  // namespace

extern const HalfTileKernels avx512_bf16_tiles;
const HalfTileKernels avx512_bf16_tiles{"avx512_bf16", begin_nothing, end_nothing,          multiply_pairs,
                                        store_half,    pair_up_half,  transpose_pairs_half, transpose_half};

}  // namespace gpunn::cpu
