#include <cstring>

#include <immintrin.h>

#include "simd/int8.hpp"

namespace gpunn::cpu {
namespace {

// Columns [column, column + 16) of three rows: more sums than that are more than there are registers.
template <int rows>
void multiply_half(const Int8Tile& t, int row, int column) {
  __m256i sums[rows][2];
  for (int i = 0; i < rows; ++i) {
    for (int v = 0; v < 2; ++v) {
      sums[i][v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.first + column + 8 * v));
    }
  }
  const int8_t* b = t.b + 4 * column;
  for (int64_t p = 0; p < t.k; p += 4, b += 4 * Int8Tile::kColumns) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 32));
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
      int32_t four = 0;
      std::memcpy(&four, t.a + (row + i) * t.a_stride + p, sizeof(four));
      const __m256i factors = _mm256_set1_epi32(four);
      sums[i][0] = _mm256_dpbusd_avx_epi32(sums[i][0], factors, low);
      sums[i][1] = _mm256_dpbusd_avx_epi32(sums[i][1], factors, high);
    }
  }
  for (int i = 0; i < rows; ++i) {
    int32_t* to = t.sums + (row + i) * Int8Tile::kColumns + column;
    for (int v = 0; v < 2; ++v) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 8 * v), sums[i][v]);
  }
}

}  // namespace

void multiply_vnni(const Int8Tile& tile);
void multiply_vnni(const Int8Tile& tile) {
  constexpr int kAtOnce = 4;
  for (int column = 0; column < Int8Tile::kColumns; column += 16) {
    int row = 0;
    for (; row + kAtOnce <= tile.rows; row += kAtOnce) multiply_half<kAtOnce>(tile, row, column);
    for (; row < tile.rows; ++row) multiply_half<1>(tile, row, column);
  }
}

}  // namespace gpunn::cpu
