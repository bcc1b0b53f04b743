// Sums over the ranks of a training, inside the second kernel of a step: an all-reduce in one shot.
//
// A thread that has gradients writes them to the memory of every other rank, and waits until theirs have arrived in its
// own memory. It adds them in the order of the ranks, so that all ranks have the same bits. A word that has not arrived
// holds kAbsent, which no gradient is. So the reader needs no flag, and the writer no fence. After the reader has the
// word it puts kAbsent there again, for the run after the next.
//
// Runs take turns between two halves of the memory. A rank writes the words of run n + 2 after it has read all of run
// n + 1, which the others wrote after they had read and cleared all of run n.
//
// A wait ends if the host says that a rank is lost: the sums are wrong then, and the host throws them away.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "step_plan.hpp"
#include "step_sync.cuh"

namespace gpunn::cuda_tiled {

// The number of this run, from 1 on: the same on all ranks, which run the same steps. The first kernel counts.
__device__ __forceinline__ uint32_t run_of(const StepTensors& tensors) {
  return *static_cast<volatile const uint32_t*>(&tensors.noted->started) + 1;
}

// The same for all threads of a block, behind a barrier.
__device__ __forceinline__ uint32_t& shared_run() {
  __shared__ uint32_t run;
  return run;
}

// What a word holds before it arrives: the memory is cleared to it (PeerArena). A NaN, in place of which another NaN is
// sent.
inline constexpr uint32_t kAbsent = 0xFFFFFFFF;

__device__ __forceinline__ uint32_t word_of(float value) {
  const uint32_t word = __float_as_uint(value);
  return word == kAbsent ? 0x7FFFFFFF : word;
}

// COUNT words, 1 or 4, at a multiple of their size.
template <int COUNT>
struct Words {
  static_assert(COUNT == 1 || COUNT == 4);
  uint32_t word[COUNT];

  __device__ __forceinline__ bool there() const {
    bool all = true;
#pragma unroll
    for (int j = 0; j < COUNT; ++j) all = all && word[j] != kAbsent;
    return all;
  }
};

template <int COUNT>
__device__ __forceinline__ void store_words(uint32_t* to, const Words<COUNT>& words) {
  if constexpr (COUNT == 4) {
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.word[0]),
                 "r"(words.word[1]), "r"(words.word[2]), "r"(words.word[3])
                 : "memory");
  } else {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(words.word[0]) : "memory");
  }
}

template <int COUNT>
__device__ __forceinline__ void load_words(const uint32_t* from, Words<COUNT>& words) {
  if constexpr (COUNT == 4) {
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]), "=r"(words.word[3])
                 : "l"(from)
                 : "memory");
  } else {
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(words.word[0]) : "l"(from) : "memory");
  }
}

__device__ __forceinline__ uint64_t nanoseconds() {
  uint64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// The end of a wait for ranks that are lost. Looking at the GPU's own flag is cheap, at the host's it is not.
class PeerPatience {
 public:
  __device__ __forceinline__ explicit PeerPatience(const PeerWords& peers) : peers_(peers) {}
  // After a look in vain.
  __device__ __forceinline__ bool exhausted() {
    ++looks_;
    if (looks_ % kLooks != 0) return false;
    if (*static_cast<volatile const uint32_t*>(peers_.stopped) != 0) return true;
    if (looks_ % kHostLooks != 0) return false;
    if (*static_cast<volatile const uint32_t*>(peers_.stop) != 0) {
      *static_cast<volatile uint32_t*>(peers_.stopped) = 1;
      return true;
    }
    // The host tells of a lost rank within 20 s. A host that does not is lost itself.
    const uint64_t now = nanoseconds();
    if (since_ == 0) since_ = now;
    if (now - since_ > kMostNanoseconds) __trap();
    return false;
  }

 private:
  static constexpr uint32_t kLooks = 32;
  static constexpr uint32_t kHostLooks = 2048;
  static constexpr uint64_t kMostNanoseconds = 60'000'000'000;

  const PeerWords& peers_;
  uint32_t looks_ = 0;
  uint64_t since_ = 0;
};

// Replaces sums[j] by its sum over all ranks, exchanged as the words from `at` on.
template <int COUNT>
__device__ __forceinline__ void add_over_ranks(const PeerWords& peers, uint32_t run, int64_t at, float (&sums)[COUNT]) {
  const int64_t half = (run & 1U) != 0 ? peers.world * peers.words : 0;
  Words<COUNT> own;
#pragma unroll
  for (int j = 0; j < COUNT; ++j) own.word[j] = word_of(sums[j]);
#pragma unroll 1
  for (int i = 1; i < peers.world; ++i) {
    // Not all ranks write to one of them first.
    const int other = peers.rank + i < peers.world ? peers.rank + i : peers.rank + i - peers.world;
    store_words(peers.of[other] + half + peers.rank * peers.words + at, own);
  }
  PeerPatience patience(peers);
#pragma unroll 1
  for (int rank = 0; rank < peers.world; ++rank) {
    Words<COUNT> words = own;
    if (rank != peers.rank) {
      uint32_t* from = peers.of[peers.rank] + half + rank * peers.words + at;
      while (true) {
        load_words(from, words);
        if (words.there() || patience.exhausted()) break;
      }
      Words<COUNT> cleared;
#pragma unroll
      for (int j = 0; j < COUNT; ++j) cleared.word[j] = kAbsent;
      store_words(from, cleared);
    }
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
      const float value = __uint_as_float(words.word[j]);
      sums[j] = rank == 0 ? value : sums[j] + value;
    }
  }
}

}  // namespace gpunn::cuda_tiled
