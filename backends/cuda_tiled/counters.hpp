// Counters in device memory, by which a thread block learns that it is the last of a group to finish.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include "cuda_common/check.hpp"

namespace gpunn::cuda_tiled {

// The counters are zero at first, and whenever no kernel that uses them runs.
class Counters {
 public:
  explicit Counters(std::size_t count) {
    const std::size_t bytes = count * sizeof(unsigned);
    void* made = nullptr;
    cuda::check(cudaMalloc(&made, bytes), "making counters");
    data_ = static_cast<unsigned*>(made);
    cudaError_t code = cudaMemset(data_, 0, bytes);
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
