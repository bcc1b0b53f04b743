// Copies the filters of direct:2's data gradient to shared memory, as [channel][r][group of TK][s][k].
//
// Neighbouring threads load neighbouring numbers of global memory. Each issues several loads before it needs the first,
// and computes the destinations in advance. H200: for the data gradient of 5x5, 6 to 16 channels, a block waits 1100 of
// its cycles for the copies; copied one by one it was 2450 of 15,000.
#pragma once

#include <cstdint>

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "conv/direct/direct_stage.cuh"
#include "divider.cuh"
#include "shared_barrier.cuh"

namespace gpunn::cuda_tiled::direct {

// Filters stored as [channel][filter][r][s].
struct WeightStage {
  int count = 0;  // floats
  int taps = 0;
  int channel_step = 0, row_step = 0;  // floats in shared memory
  Divider by_channel, by_taps;

  void finish(int channels, int filters, int taps_of_filter) {
    taps = taps_of_filter;
    count = channels * filters * taps;
    by_channel = Divider(filters * taps);
    by_taps = Divider(taps);
  }
};

// The destination of float i of the filters.
template <int S, int TK>
__device__ __forceinline__ int place_of(const WeightStage& z, int i) {
  const auto [channel, in_channel] = z.by_channel(i);
  const auto [filter, tap] = z.by_taps(in_channel);
  return channel * z.channel_step + tap / S * z.row_step + filter / TK * four_fold(TK * S) + tap % S * TK + filter % TK;
}

// The first floats that a thread copies.
template <int S, int TK>
class WeightPlaces {
 public:
  // Runs before the previous kernel has ended.
  __device__ __forceinline__ WeightPlaces(const WeightStage& z, const float* from, float* to) : from_(from), to_(to) {
    __shared__ float nowhere;  // gets what there is none of, so that nothing depends on it
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const int i = static_cast<int>(j * blockDim.x + threadIdx.x);
      int place = place_of<S, TK>(z, i);
      asm volatile("" : "+r"(place));  // without a branch
      from_at_[j] = i < z.count ? i : 0;
      to_at_[j] = i < z.count ? shared_address(to + place) : shared_address(&nowhere);
      // Forces the compiler to compute the addresses here, not at their use.
      asm volatile("" : "+r"(from_at_[j]), "+r"(to_at_[j]));
    }
    asm volatile("" : "+l"(from_));
  }

  // All threads of the block call it. The caller calls __pipeline_commit(), __pipeline_wait_prior() and a barrier.
  __device__ __forceinline__ void bring(const WeightStage& z) const {
    float value[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      asm volatile("ld.global.f32 %0, [%1];" : "=f"(value[j]) : "l"(from_ + from_at_[j]) : "memory");
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      asm volatile("st.shared.f32 [%0], %1;" ::"r"(to_at_[j]), "f"(value[j]) : "memory");
    }
    const int threads = static_cast<int>(blockDim.x);
#pragma unroll 1
    for (int i = kAhead * threads + static_cast<int>(threadIdx.x); i < z.count; i += threads) {
      __pipeline_memcpy_async(to_ + place_of<S, TK>(z, i), from_ + i, sizeof(float));
    }
  }

 private:
  static constexpr int kAhead = 10;
  const float* from_;
  float* to_;
  int from_at_[kAhead];
  uint32_t to_at_[kAhead];
};

}  // namespace gpunn::cuda_tiled::direct
