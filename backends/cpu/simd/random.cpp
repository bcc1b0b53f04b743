#include "simd/random.hpp"

namespace gpunn::cpu {
namespace {

// Blocks that are drawn together, a lane each.
constexpr int kDrawnBlocks = 16;

struct Counters {
  alignas(64) uint32_t word[4][kDrawnBlocks];
};

// One round of ten; gpunn_philox() says it for a single block.
inline void philox_round(Counters& c, uint32_t key0, uint32_t key1) {
#pragma omp simd
  for (int i = 0; i < kDrawnBlocks; ++i) {
    const uint64_t p0 = uint64_t{0xD2511F53U} * c.word[0][i];
    const uint64_t p1 = uint64_t{0xCD9E8D57U} * c.word[2][i];
    c.word[0][i] = static_cast<uint32_t>(p1 >> 32) ^ c.word[1][i] ^ key0;
    c.word[1][i] = static_cast<uint32_t>(p1);
    c.word[2][i] = static_cast<uint32_t>(p0 >> 32) ^ c.word[3][i] ^ key1;
    c.word[3][i] = static_cast<uint32_t>(p0);
  }
}

inline void philox(Counters& c, uint64_t seed) {
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    philox_round(c, key0, key1);
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
}

void words(uint64_t seed, uint64_t stream, uint64_t block, uint32_t* out, int64_t n) {
  Counters c{};
  uint32_t tail[4 * kDrawnBlocks];
  while (n > 0) {
#pragma omp simd
    for (int i = 0; i < kDrawnBlocks; ++i) {
      const uint64_t at = block + static_cast<uint64_t>(i);
      c.word[0][i] = static_cast<uint32_t>(at);
      c.word[1][i] = static_cast<uint32_t>(at >> 32);
      c.word[2][i] = static_cast<uint32_t>(stream);
      c.word[3][i] = static_cast<uint32_t>(stream >> 32);
    }
    philox(c, seed);
    const bool whole = n >= 4 * kDrawnBlocks;
    uint32_t* to = whole ? out : tail;
#pragma omp simd
    for (int i = 0; i < kDrawnBlocks; ++i) {
      to[4 * i] = c.word[0][i];
      to[4 * i + 1] = c.word[1][i];
      to[4 * i + 2] = c.word[2][i];
      to[4 * i + 3] = c.word[3][i];
    }
    if (!whole) {
      for (int64_t i = 0; i < n; ++i) out[i] = tail[i];
    }
    block += kDrawnBlocks;
    out += 4 * kDrawnBlocks;
    n -= 4 * kDrawnBlocks;
  }
}

void drop(const float* x, const uint32_t* random, uint32_t threshold, float factor, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float kept = factor * x[i];
    y[i] = random[i] >> 8 < threshold ? 0.0F : kept;
  }
}

// The Feistel network of gpunn_random_permute.
struct Feistel {
  uint64_t seed;
  uint64_t stream;
  uint32_t low_bits;
  uint32_t low_mask;
  uint32_t high_mask;
};

// to ^= f(from) for the round function f.
inline void feistel_round(const Feistel& net, uint32_t round, const uint32_t* from, uint32_t* to, uint32_t mask) {
  Counters c{};
#pragma omp simd
  for (int i = 0; i < kDrawnBlocks; ++i) {
    c.word[0][i] = from[i];
    c.word[1][i] = round;
    c.word[2][i] = static_cast<uint32_t>(net.stream);
    c.word[3][i] = static_cast<uint32_t>(net.stream >> 32);
  }
  philox(c, net.seed);
#pragma omp simd
  for (int i = 0; i < kDrawnBlocks; ++i) to[i] ^= c.word[0][i] & mask;
}

inline void feistel(const Feistel& net, uint32_t* values) {
  alignas(64) uint32_t high[kDrawnBlocks];
  alignas(64) uint32_t low[kDrawnBlocks];
#pragma omp simd
  for (int i = 0; i < kDrawnBlocks; ++i) {
    high[i] = values[i] >> net.low_bits;
    low[i] = values[i] & net.low_mask;
  }
  for (uint32_t round = 0; round < 12; round += 2) {
    feistel_round(net, round, low, high, net.high_mask);
    feistel_round(net, round + 1, high, low, net.low_mask);
  }
#pragma omp simd
  for (int i = 0; i < kDrawnBlocks; ++i) values[i] = (high[i] << net.low_bits) | low[i];
}

void permute(uint64_t seed, uint64_t stream, int64_t c, uint32_t n, uint32_t first, int32_t* places, int64_t count) {
  uint32_t bits = 2;
  while (bits < 32 && (uint64_t{1} << bits) < n) ++bits;
  Feistel net{};
  net.seed = seed;
  net.stream = (static_cast<uint64_t>(c) << 32) | static_cast<uint32_t>(stream);
  net.low_bits = bits / 2;
  net.low_mask = (uint32_t{1} << net.low_bits) - 1;
  net.high_mask = (uint32_t{1} << (bits - net.low_bits)) - 1;

  // Lanes walk on until all have landed below n; a lane that is done takes up the next position, so that none idles.
  alignas(64) uint32_t values[kDrawnBlocks];
  int64_t owner[kDrawnBlocks];
  int64_t next = 0;
  int64_t done = 0;
  for (int i = 0; i < kDrawnBlocks; ++i) {
    owner[i] = next < count ? next++ : -1;
    values[i] = owner[i] >= 0 ? first + static_cast<uint32_t>(owner[i]) : 0;
  }
  while (done < count) {
    feistel(net, values);
    for (int i = 0; i < kDrawnBlocks; ++i) {
      if (owner[i] < 0 || values[i] >= n) continue;
      places[owner[i]] = static_cast<int32_t>(values[i]);
      ++done;
      owner[i] = next < count ? next++ : -1;
      values[i] = owner[i] >= 0 ? first + static_cast<uint32_t>(owner[i]) : 0;
    }
  }
}

}  // namespace

namespace GPUNN_ISA {
extern const RandomKernels random_kernels;
const RandomKernels random_kernels{words, drop, permute};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
