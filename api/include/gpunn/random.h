/*
 * Random numbers, bit for bit the same on every backend.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011). The key is the seed,
 * low word first. The counter is { block low, block high, stream low, stream high }: cuRAND's Philox generator gives
 * these words for curand_init(seed, stream, 4 * block).
 *
 * A tensor of n elements drawn at counter value c takes blocks c * ceil(n/4) onwards: element i is word i mod 4 of
 * block c * ceil(n/4) + i / 4.
 *
 * Plain C that also compiles as CUDA device code.
 */
#ifndef GPUNN_RANDOM_H
#define GPUNN_RANDOM_H

#include <stdint.h>

/* Makes the functions of this header usable in C, C++ and CUDA. */
/* Makes the functions of this header usable in C, C++ and CUDA. */
#ifdef __CUDACC__
#define GPUNN_RANDOM_FN static __host__ __device__ __forceinline__
#else
#define GPUNN_RANDOM_FN static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Four random words of 32 bits: what one call of Philox gives. */
typedef struct gpunn_random_words {
  uint32_t word[4];
} gpunn_random_words;

/* The four words of one block. */
GPUNN_RANDOM_FN gpunn_random_words gpunn_philox(uint64_t seed, uint64_t stream, uint64_t block) {
  uint32_t c0 = (uint32_t)block;
  uint32_t c1 = (uint32_t)(block >> 32);
  uint32_t c2 = (uint32_t)stream;
  uint32_t c3 = (uint32_t)(stream >> 32);
  uint32_t k0 = (uint32_t)seed;
  uint32_t k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
    const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c0 = n0;
    c1 = (uint32_t)p1;
    c2 = n2;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  gpunn_random_words words;
  words.word[0] = c0;
  words.word[1] = c1;
  words.word[2] = c2;
  words.word[3] = c3;
  return words;
}

/* The first block of a tensor of n elements at counter value c. */
GPUNN_RANDOM_FN uint64_t gpunn_random_block(int64_t c, int64_t n) { return (uint64_t)c * (((uint64_t)n + 3) / 4); }

/* A word as a float in [0, 1), on a grid of 2^-24. */
GPUNN_RANDOM_FN float gpunn_random_unit(uint32_t word) { return (float)(word >> 8) * 5.9604644775390625e-8f; }

/* A word as a float in (0, 1], for logarithms. A pair of normal numbers is sqrt(-2 ln u1) * { cos, sin }(2 pi u2) with
 * u1 = gpunn_random_positive(word 0 or 2) and u2 = gpunn_random_unit(word 1 or 3) (Box and Muller, 1958). */
GPUNN_RANDOM_FN float gpunn_random_positive(uint32_t word) { return (float)((word >> 8) + 1) * 5.9604644775390625e-8f; }

/* An element is dropped with probability p if its word >> 8 is below this. */
GPUNN_RANDOM_FN uint32_t gpunn_dropout_threshold(float p) { return (uint32_t)(p * 16777216.0f); }

/* Where position i (0 <= i < n <= 2^31) goes in permutation number c: a Feistel network over the smallest even or odd
 * number of bits that holds n, walked until it lands below n, so that any element costs O(1) and no memory. The round
 * function is word 0 of Philox at block { half, round } and stream { c, stream }. */
GPUNN_RANDOM_FN uint32_t gpunn_random_permute(uint64_t seed, uint64_t stream, int64_t c, uint32_t n, uint32_t i) {
  uint32_t bits = 2;
  while (bits < 32 && ((uint64_t)1 << bits) < n) ++bits;
  const uint32_t low_bits = bits / 2;
  const uint32_t high_bits = bits - low_bits;
  const uint32_t low_mask = ((uint32_t)1 << low_bits) - 1;
  const uint32_t high_mask = ((uint32_t)1 << high_bits) - 1;
  const uint64_t round_stream = ((uint64_t)c << 32) | (uint32_t)stream;
  uint32_t value = i;
  do {
    uint32_t high = value >> low_bits;
    uint32_t low = value & low_mask;
    for (uint32_t round = 0; round < 12; round += 2) {
      high ^= gpunn_philox(seed, round_stream, ((uint64_t)round << 32) | low).word[0] & high_mask;
      low ^= gpunn_philox(seed, round_stream, ((uint64_t)(round + 1) << 32) | high).word[0] & low_mask;
    }
    value = (high << low_bits) | low;
  } while (value >= n);
  return value;
}

#ifdef __cplusplus
}
#endif

#endif
