// Philox4x32-10 of <gpunn/random.h>, many blocks at once; the same bits.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

// Words that a caller draws at once: a buffer that stays in the first-level cache.
constexpr int64_t kWordsAtOnce = 2048;

struct RandomKernels {
  // The first n words of the blocks from `block` on.
  void (*words)(uint64_t seed, uint64_t stream, uint64_t block, uint32_t* words, int64_t n);
  // y = word >> 8 < threshold ? 0 : factor * x; y may be x.
  void (*drop)(const float* x, const uint32_t* words, uint32_t threshold, float factor, float* y, int64_t n);
  // places[i] = gpunn_random_permute(seed, stream, c, n, first + i), for n >= 1 and first + count <= n.
  void (*permute)(uint64_t seed, uint64_t stream, int64_t c, uint32_t n, uint32_t first, int32_t* places,
                  int64_t count);
};

GPUNN_DECLARE_ISA_VARIANTS(RandomKernels, random_kernels);

}  // namespace gpunn::cpu
