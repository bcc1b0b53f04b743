// Counters in device memory, for blocks that count who comes last (last_block.cuh).
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include "cuda_common/check.hpp"

namespace gpunn::cuda_tiled {

// Zero at first, and whenever no kernel runs that uses them.
class Counters {
 public:
  explicit Counters(std::size_t count) {
    void* data = nullptr;
    cuda::check(cudaMalloc(&data, count * sizeof(unsigned)), "making counters");
    data_ = static_cast<unsigned*>(data);
    cudaError_t code = cudaMemset(data_, 0, count * sizeof(unsigned));
    // The streams of a training don't wait for the one on which that was put.
    if (code == cudaSuccess) code = cudaStreamSynchronize(cudaStreamLegacy);
    if (code == cudaSuccess) return;
    cudaFree(data_);
    cuda::check(code, "clearing counters");
  }
  ~Counters() { cudaFree(data_); }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  unsigned* data() const { return data_; }

 private:
  unsigned* data_ = nullptr;
};

}  // namespace gpunn::cuda_tiled
