#include <cstring>

#include <immintrin.h>

#include "simd/int8.hpp"

namespace gpunn::cpu {
namespace {

template <int rows>
void multiply_rows(const Int8Tile& t) {
  __m512i sums[rows][2];
  const __m512i first = _mm512_loadu_si512(t.first), second = _mm512_loadu_si512(t.first + 16);
#pragma GCC unroll 12
  for (int i = 0; i < rows; ++i) {
    sums[i][0] = first;
    sums[i][1] = second;
  }
  const int8_t* b = t.b;
  for (int64_t p = 0; p < t.k; p += 4, b += 4 * Int8Tile::kColumns) {
    const __m512i low = _mm512_loadu_si512(b), high = _mm512_loadu_si512(b + 64);
#pragma GCC unroll 12
    for (int i = 0; i < rows; ++i) {
      int32_t four = 0;
      std::memcpy(&four, t.a + i * t.a_stride + p, sizeof(four));
      const __m512i factors = _mm512_set1_epi32(four);
      sums[i][0] = _mm512_dpbusd_epi32(sums[i][0], factors, low);
      sums[i][1] = _mm512_dpbusd_epi32(sums[i][1], factors, high);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < rows; ++i) {
    _mm512_storeu_si512(t.sums + i * Int8Tile::kColumns, sums[i][0]);
    _mm512_storeu_si512(t.sums + i * Int8Tile::kColumns + 16, sums[i][1]);
  }
}

template <int rows>
void multiply_up_to(const Int8Tile& t) {
  if constexpr (rows > 1) {
    if (t.rows < rows) return multiply_up_to<rows - 1>(t);
  }
  multiply_rows<rows>(t);
}

}  // namespace

void multiply_vnni512(const Int8Tile& tile);
void multiply_vnni512(const Int8Tile& tile) { multiply_up_to<Int8Tile::kVectorRows>(tile); }

}  // namespace gpunn::cpu
