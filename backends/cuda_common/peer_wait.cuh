// The end of a wait for ranks that are lost, on the GPU.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace gpunn::cuda {

// Words that are not 0 once another rank is lost.
struct PeerStop {
  const uint32_t* host;  // PeerGroup::stop()
  uint32_t* gpu;         // this GPU's own copy, which is cheap to look at
};

// Counts the looks of a thread that waits for another rank.
class PeerPatience {
 public:
  __device__ __forceinline__ explicit PeerPatience(const PeerStop& stop) : stop_(stop) {}
  // After a look in vain.
  __device__ __forceinline__ bool exhausted() {
    ++looks_;
    if (looks_ % kLooks != 0) return false;
    if (*static_cast<volatile const uint32_t*>(stop_.gpu) != 0) return true;
    if (looks_ % kHostLooks != 0) return false;
    if (*static_cast<volatile const uint32_t*>(stop_.host) != 0) {
      *static_cast<volatile uint32_t*>(stop_.gpu) = 1;
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

  static __device__ __forceinline__ uint64_t nanoseconds() {
    uint64_t now = 0;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
  }

  const PeerStop stop_;
  uint32_t looks_ = 0;
  uint64_t since_ = 0;
};

}  // namespace gpunn::cuda
