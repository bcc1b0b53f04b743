// All-reduce between GPUs of one machine through their memory, without NCCL.
//
// Small sums take one kernel: each thread writes its elements to the other GPUs, in words with the number of the sum,
// and waits for theirs. Between two GPUs, a large sum is copied to the other GPU by a copy engine, and added there.
// A copy takes no multiprocessors from the backward pass, as NCCL's kernels do. Trainings on two H100s won no time by
// that (docs/scaling.md), so these are the sums where NCCL is missing or a fixed order is asked for.
#pragma once

#include <gpunn/collective.hpp>

#include <cstdint>

#include <cuda_runtime_api.h>

#include "cuda_common/device.hpp"
#include "cuda_common/peer_memory.hpp"

namespace gpunn::cuda {

// The memory of one rank as another reaches it.
struct PeerSumMemory {
  uint64_t* words;  // [parity of the sum][sender][word]
  uint32_t* marks;  // kPeerMarks apart: how many copies have arrived here; how many the other rank has added
  char* staging;    // copies from the other rank
};

class PeerSums {
 public:
  // Throws Failure(GPUNN_UNSUPPORTED) on every rank if one of them has no way to another's memory.
  PeerSums(const CudaDevice& device, const plugin::CommunicatorOptions& options);
  PeerSums(const PeerSums&) = delete;
  PeerSums& operator=(const PeerSums&) = delete;
  ~PeerSums();

  // ALL_REDUCE of f32, bf16 and f16; of more than a megabyte between two ranks only.
  bool serves(const gpunn_collective_desc& desc) const;
  // The sum is in the order of the ranks, formed in f32 and rounded once.
  void enqueue(cudaStream_t stream, const gpunn_collective_desc& desc, const void* in, void* out);
  void abort() noexcept { group_.abort(); }

 private:
  PeerSumMemory of(int rank) const;
  void await_last_mark() const noexcept;

  PeerGroup group_;
  PeerArena arena_;
  void* counters_ = nullptr;  // on the GPU
};

}  // namespace gpunn::cuda
