// Sums over the ranks of a training, inside the second kernel of a step: an all-reduce in one shot.
//
// A thread that has a gradient writes it to the memory of every other rank, in a word together with the number of the
// run, and waits until theirs have arrived in its own memory. It adds them in the order of the ranks, so that all ranks
// have the same bits. A word is written at once, so no fence and no barrier is needed. This is the protocol that NCCL
// calls LL. It doubles the bytes, which is why it is for small networks.
//
// Runs take turns between two halves of the memory. A rank writes the words of run n + 2 after it has read all of run
// n + 1, which the others wrote after they had read all of run n.
//
// A wait ends if the host says that a rank is lost: the sums are wrong then, and the host throws them away.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "cuda_common/peer_wait.cuh"
#include "subgraphs/step/sync.cuh"
#include "subgraphs/step/tensors.hpp"

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

__device__ __forceinline__ void tell_peer(uint64_t* to, float value, uint32_t run) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(tagged(value, run)) : "memory");
}

__device__ __forceinline__ uint64_t word_of_peer(const uint64_t* from) {
  uint64_t word = 0;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  return word;
}

// Replaces sums[j] by its sum over all ranks, where word place(j) is not negative.
template <int COUNT, class Place>
__device__ __forceinline__ void add_over_ranks(const PeerWords& peers, uint32_t run, Place place,
                                               float (&sums)[COUNT]) {
  const int64_t half = (run & 1U) != 0 ? peers.world * peers.words : 0;
  const int64_t from_me = half + peers.rank * peers.words;
#pragma unroll 1
  for (int i = 1; i < peers.world; ++i) {
    // Not all ranks write to one of them first.
    const int other = peers.rank + i < peers.world ? peers.rank + i : peers.rank + i - peers.world;
    uint64_t* to = peers.of[other] + from_me;
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
      const int at = place(j);
      if (at >= 0) tell_peer(to + at, sums[j], run);
    }
  }
  float own[COUNT];
#pragma unroll
  for (int j = 0; j < COUNT; ++j) own[j] = sums[j];
  cuda::PeerPatience patience({.host = peers.stop, .gpu = peers.stopped});
#pragma unroll 1
  for (int rank = 0; rank < peers.world; ++rank) {
    float values[COUNT];
    if (rank == peers.rank) {
#pragma unroll
      for (int j = 0; j < COUNT; ++j) values[j] = own[j];
    } else {
      const uint64_t* from = peers.of[peers.rank] + half + rank * peers.words;
      bool all = false;
      while (true) {
        all = true;
#pragma unroll
        for (int j = 0; j < COUNT; ++j) {
          const int at = place(j);
          const uint64_t word = at >= 0 ? word_of_peer(from + at) : uint64_t{run} << 32;
          values[j] = __uint_as_float(static_cast<uint32_t>(word));
          all = all && word >> 32 == run;
        }
        if (all || patience.exhausted()) break;
        __nanosleep(20);
      }
    }
#pragma unroll
    for (int j = 0; j < COUNT; ++j) sums[j] = rank == 0 ? values[j] : sums[j] + values[j];
  }
}

}  // namespace gpunn::cuda_tiled
