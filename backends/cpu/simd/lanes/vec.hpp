// The vector of f32 of the instruction set that this file is compiled for, on the compilers' vector extensions.
// Arithmetic is by operators; a * b + c becomes one FMA where the machine has it. Only for files of simd/.
#pragma once

#include <gpunn/float_formats.hpp>

#include <cstddef>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace gpunn::cpu::GPUNN_ISA {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

using Vec = float __attribute__((vector_size(kLanes * sizeof(float))));

#define GPUNN_ALWAYS_INLINE inline __attribute__((always_inline))
// Clang's AddressSanitizer looks at each lane of a masked access. As functions of their own, AVX-512's kernels compile
// in a sixth of the time.
#ifdef GPUNN_SANITIZED
#define GPUNN_MASKED_ACCESS inline __attribute__((noinline))
#else
#define GPUNN_MASKED_ACCESS GPUNN_ALWAYS_INLINE
#endif

// Of any alignment.
GPUNN_ALWAYS_INLINE Vec load(const float* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
GPUNN_ALWAYS_INLINE void store(float* p, Vec v) { __builtin_memcpy(p, &v, sizeof(v)); }

GPUNN_ALWAYS_INLINE Vec zero() { return Vec{}; }
GPUNN_ALWAYS_INLINE Vec broadcast(float x) { return x - Vec{}; }

// The larger of two by lane; where either is NaN, a: so max_or_nan(x, zero()) keeps x's NaN.
GPUNN_ALWAYS_INLINE Vec max_or_nan(Vec a, Vec b) { return a < b ? b : a; }

// The first n lanes, 0 < n <= kLanes; memory beyond them is not touched. Other lanes load as 0.
#if defined(__AVX512F__)
GPUNN_ALWAYS_INLINE __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1U << n) - 1U); }
GPUNN_MASKED_ACCESS Vec load_first(const float* p, int n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
GPUNN_MASKED_ACCESS void store_first(float* p, Vec v, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), v); }
#elif defined(__AVX2__)
GPUNN_ALWAYS_INLINE __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
GPUNN_ALWAYS_INLINE Vec load_first(const float* p, int n) { return _mm256_maskload_ps(p, first_lanes(n)); }
GPUNN_ALWAYS_INLINE void store_first(float* p, Vec v, int n) { _mm256_maskstore_ps(p, first_lanes(n), v); }
#else
GPUNN_ALWAYS_INLINE Vec load_first(const float* p, int n) {
  Vec v = zero();
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
GPUNN_ALWAYS_INLINE void store_first(float* p, Vec v, int n) {
  for (int i = 0; i < n; ++i) p[i] = v[i];
}
#endif

// A bit a lane.
using LaneBits = uint16_t;
// Lanes above 0; not those that are NaN.
#if defined(__AVX512F__)
GPUNN_ALWAYS_INLINE LaneBits positive_lanes(Vec v) { return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GT_OQ); }
GPUNN_ALWAYS_INLINE Vec keep_lanes(Vec v, LaneBits bits) { return _mm512_maskz_mov_ps(bits, v); }
#elif defined(__AVX2__)
GPUNN_ALWAYS_INLINE LaneBits positive_lanes(Vec v) {
  return static_cast<LaneBits>(_mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_GT_OQ)));
}
GPUNN_ALWAYS_INLINE Vec keep_lanes(Vec v, LaneBits bits) {
  const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i kept = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits), lane), lane);
  return _mm256_and_ps(v, _mm256_castsi256_ps(kept));
}
#else
GPUNN_ALWAYS_INLINE LaneBits positive_lanes(Vec v) {
  unsigned bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= (v[i] > 0.0F ? 1U : 0U) << i;
  return static_cast<LaneBits>(bits);
}
GPUNN_ALWAYS_INLINE Vec keep_lanes(Vec v, LaneBits bits) {
  for (int i = 0; i < kLanes; ++i) v[i] = (bits >> i & 1) != 0 ? v[i] : 0.0F;
  return v;
}
#endif

// The same of bf16 numbers in memory; stored to the nearest, ties to even.
using Bits32 = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using Bits16 = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

// One instruction of the machine's each: of __builtin_convertvector GCC 12 makes several. It warns of the intrinsics
// without a mask.
#if defined(__AVX512F__)
GPUNN_ALWAYS_INLINE Bits32 wide_bits(Bits16 bits) {
  return reinterpret_cast<Bits32>(_mm512_maskz_cvtepu16_epi32(0xFFFF, reinterpret_cast<__m256i>(bits)));
}
GPUNN_ALWAYS_INLINE Bits16 low_bits(Bits32 bits) {
  return reinterpret_cast<Bits16>(_mm512_maskz_cvtepi32_epi16(0xFFFF, reinterpret_cast<__m512i>(bits)));
}
#elif defined(__AVX2__)
GPUNN_ALWAYS_INLINE Bits32 wide_bits(Bits16 bits) {
  return reinterpret_cast<Bits32>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(bits)));
}
GPUNN_ALWAYS_INLINE Bits16 low_bits(Bits32 bits) { return __builtin_convertvector(bits, Bits16); }
#else
GPUNN_ALWAYS_INLINE Bits32 wide_bits(Bits16 bits) { return __builtin_convertvector(bits, Bits32); }
GPUNN_ALWAYS_INLINE Bits16 low_bits(Bits32 bits) { return __builtin_convertvector(bits, Bits16); }
#endif
GPUNN_ALWAYS_INLINE Vec widened(Bits16 bits) { return reinterpret_cast<Vec>(wide_bits(bits) << 16); }
GPUNN_ALWAYS_INLINE Bits16 narrowed(Vec v) {
  const auto wide = reinterpret_cast<Bits32>(v);
  const Bits32 rounded = wide + 0x7FFFU + ((wide >> 16) & 1U);
  const Bits32 made = v != v ? wide | 0x400000U : rounded;  // NOLINT(misc-redundant-expression): a NaN stays one
  return low_bits(made >> 16);
}
GPUNN_ALWAYS_INLINE Vec load(const BFloat16* p) {
  Bits16 bits;
  __builtin_memcpy(&bits, p, sizeof(bits));
  return widened(bits);
}
GPUNN_ALWAYS_INLINE void store(BFloat16* p, Vec v) {
  const Bits16 bits = narrowed(v);
  __builtin_memcpy(static_cast<void*>(p), &bits, sizeof(bits));
}
GPUNN_ALWAYS_INLINE Vec load_first(const BFloat16* p, int n) {
  Bits16 bits{};
  __builtin_memcpy(&bits, p, static_cast<std::size_t>(n) * sizeof(BFloat16));
  return widened(bits);
}
GPUNN_ALWAYS_INLINE void store_first(BFloat16* p, Vec v, int n) {
  const Bits16 bits = narrowed(v);
  __builtin_memcpy(static_cast<void*>(p), &bits, static_cast<std::size_t>(n) * sizeof(BFloat16));
}

// Calls body(first channel, load, store) for vectors of channels: load(p) reads a vector's channels, store(p, v) writes
// them.
template <class Body>
GPUNN_ALWAYS_INLINE void each_vector(int64_t channels, const Body& body) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    body(
        c, [](const auto* p) { return load(p); }, [](auto* p, Vec v) { store(p, v); });
  }
  if (c == channels) return;
  const int n = static_cast<int>(channels - c);
  body(
      c, [n](const auto* p) { return load_first(p, n); }, [n](auto* p, Vec v) { store_first(p, v, n); });
}

// The sum of the lanes, halves first: an order that the width alone decides.
GPUNN_ALWAYS_INLINE float sum_lanes(Vec v) {
  float lane[kLanes];
  store(lane, v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

// One stage of the transpose: pairs of rows `distance` apart exchange blocks of `distance` lanes.
template <int distance>
GPUNN_ALWAYS_INLINE void exchange(Vec& a, Vec& b) {
  const Vec x = a;
  const Vec y = b;
#if defined(__AVX512F__)
  if constexpr (distance == 8) {
    a = __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    b = __builtin_shufflevector(x, y, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  } else if constexpr (distance == 4) {
    a = __builtin_shufflevector(x, y, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
    b = __builtin_shufflevector(x, y, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  } else if constexpr (distance == 2) {
    a = __builtin_shufflevector(x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    b = __builtin_shufflevector(x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  } else {
    a = __builtin_shufflevector(x, y, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
    b = __builtin_shufflevector(x, y, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  }
#elif defined(__AVX2__)
  if constexpr (distance == 4) {
    a = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11);
    b = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15);
  } else if constexpr (distance == 2) {
    a = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
    b = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
  } else {
    a = __builtin_shufflevector(x, y, 0, 8, 2, 10, 4, 12, 6, 14);
    b = __builtin_shufflevector(x, y, 1, 9, 3, 11, 5, 13, 7, 15);
  }
#else
  if constexpr (distance == 2) {
    a = __builtin_shufflevector(x, y, 0, 1, 4, 5);
    b = __builtin_shufflevector(x, y, 2, 3, 6, 7);
  } else {
    a = __builtin_shufflevector(x, y, 0, 4, 2, 6);
    b = __builtin_shufflevector(x, y, 1, 5, 3, 7);
  }
#endif
}

template <int distance>
GPUNN_ALWAYS_INLINE void transpose_stage(Vec (&rows)[kLanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if ((i & distance) == 0) exchange<distance>(rows[i], rows[i + distance]);
  }
}

// rows[i][j] becomes rows[j][i].
GPUNN_ALWAYS_INLINE void transpose(Vec (&rows)[kLanes]) {
  if constexpr (kLanes >= 16) transpose_stage<8>(rows);
  if constexpr (kLanes >= 8) transpose_stage<4>(rows);
  transpose_stage<2>(rows);
  transpose_stage<1>(rows);
}

}  // namespace gpunn::cpu::GPUNN_ISA
