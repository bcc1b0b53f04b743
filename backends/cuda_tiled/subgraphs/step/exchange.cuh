// Sums over all images of a batch, for batch norm in a fused training step. Each block publishes its sum in a word
// together with the number of the run. A reader sees from the word that it has arrived: no barrier or fence is needed.
// One warp of the grid adds a channel's words, in order, and publishes the result in the same way. All blocks must be
// resident (kernels.cu checks this).
//
// A single warp reads the words because otherwise every block would repeatedly read megabytes from the L2 cache while
// it waits.
#pragma once

#include "subgraphs/step/batch.cuh"
#include "subgraphs/step/loss.cuh"
#include "subgraphs/step/shared.cuh"

namespace gpunn::cuda_tiled {

__device__ __forceinline__ void tell(uint64_t* to, float2 values, uint32_t run) {
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(tagged(values.x, run)),
               "l"(tagged(values.y, run))
               : "memory");
}

__device__ __forceinline__ bool heard(const uint64_t* from, uint32_t run, float2& values) {
  uint64_t words[2] = {};
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(words[0]), "=l"(words[1]) : "l"(from) : "memory");
  values =
      make_float2(__uint_as_float(static_cast<uint32_t>(words[0])), __uint_as_float(static_cast<uint32_t>(words[1])));
  return words[0] >> 32 == run && words[1] >> 32 == run;
}

__device__ __forceinline__ float2 wait_to_hear(const uint64_t* from, uint32_t run) {
  float2 values;
  while (!heard(from, run, values)) {
  }
  return values;
}

// By a warp: begin(what the first source told), then use(source, what it told) for all `sources`, whose words lie one
// behind the other from `from` on.
template <class Begin, class Use>
__device__ __forceinline__ void hear(const uint64_t* from, uint32_t run, int sources, Begin begin, Use use) {
  constexpr int kAtOnce = 4;
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll 1
  for (int first = 0; first < sources; first += kAtOnce * 32) {
    float2 values[kAtOnce];
    bool all = false;
    while (!all) {
      all = true;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int source = min(first + i * 32 + lane, sources - 1);
        all = heard(from + int64_t{source} * 2, run, values[i]) && all;
      }
    }
    __syncwarp();
    if (first == 0) begin(make_float2(__shfl_sync(0xFFFFFFFFU, values[0].x, 0), 0.0F));
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int source = first + i * 32 + lane;
      if (source < sources) use(source, values[i]);
    }
  }
}

// The memory through which the blocks exchange the sums of a batch norm's channels, in one direction.
struct NormExchange {
  uint64_t* told;     // [channel][source]
  uint64_t* results;  // [copy][channel]
  int sources;
  int channels;

  __device__ __forceinline__ NormExchange(const StepTensors& tensors, const FinishPlan& finish, bool backward)
      : sources(finish.sources), channels(finish.channels) {
    const int words = (sources + kResultCopies) * channels;
    told = reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(tensors.noted) + exchange_from(shared_plan())) +
           (int64_t{finish.exchange} + (backward ? words : 0)) * 2;
    results = told + int64_t{sources} * channels * 2;
  }
  __device__ __forceinline__ uint64_t* source(int channel, int index) const {
    return told + (int64_t{channel} * sources + index) * 2;
  }
  __device__ __forceinline__ uint64_t* result(int channel, int copy) const {
    return results + (int64_t{copy} * channels + channel) * 2;
  }
  // By a warp that knows the result in all lanes.
  __device__ __forceinline__ void publish(int channel, float2 values, uint32_t run) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (lane < kResultCopies) tell(result(channel, lane), values, run);
  }
  __device__ __forceinline__ float2 wait_for_result(int channel, uint32_t run) const {
    return wait_to_hear(result(channel, static_cast<int>(blockIdx.x) % kResultCopies), run);
  }
};

// Rows of the batch that batch norm counts.
__device__ __forceinline__ int counted_rows(const StepPlan& plan, const StepBatch& batch) {
  return plan.counted != 0 ? min(max(batch.count, 0), plan.batch) : plan.batch;
}

// By a warp: a channel's mean and 1 / deviation over `n` elements, of which count(source) are a source's, which tells
// their mean and the sum of the squares of what is off it. Leaves mean and variance for the running ones.
template <class Count>
__device__ __forceinline__ void reduce_statistics(const StepPlan& plan, const StepTensors& tensors,
                                                  const FinishPlan& finish, const NormExchange& exchange, uint32_t run,
                                                  int channel, int sources, float n, Count count) {
  float reference = 0.0F;
  float off = 0.0F;
  float off_squares = 0.0F;
  float within = 0.0F;
  hear(
      exchange.source(channel, 0), run, sources, [&](float2 told) { reference = told.x; },
      [&](int source, float2 told) {
        const float d = told.x - reference;
        const float some = count(source) * d;
        off += some;
        off_squares = fmaf(some, d, off_squares);
        within += told.y;
      });
  off = warp_sum(off);
  off_squares = warp_sum(off_squares);
  within = warp_sum(within);
  const bool any = n > 0.0F;
  const float mean_off = any ? off / n : 0.0F;
  const float mean = any ? reference + mean_off : 0.0F;
  const float squares = within + fmaxf(off_squares - off * mean_off, 0.0F);
  const float variance = any ? squares / n : 0.0F;
  const float rstd = any ? 1.0F / sqrtf(variance + finish.finish.norm.epsilon) : 0.0F;
  exchange.publish(channel, make_float2(mean, rstd), run);
  if (threadIdx.x % 32 != 0) return;
  float* batch = tensors.workspace + plan.norm_gradients + plan.norms + finish.first_norm + channel;
  batch[0] = mean;
  batch[finish.channels] = n > 1.0F ? squares / (n - 1.0F) : variance;
}

// By a warp: a channel's means over `n` elements of the gradient and of it times what was normalised, whose sums the
// sources tell. Leaves the gradients of gamma and beta.
__device__ __forceinline__ void reduce_gradients(const StepPlan& plan, const StepTensors& tensors,
                                                 const FinishPlan& finish, const NormExchange& exchange, uint32_t run,
                                                 int channel, int sources, float n) {
  float2 sum = make_float2(0.0F, 0.0F);
  hear(
      exchange.source(channel, 0), run, sources, [](float2) {},
      [&](int, float2 told) {
        sum.x += told.x;
        sum.y += told.y;
      });
  sum.x = warp_sum(sum.x);
  sum.y = warp_sum(sum.y);
  n = fmaxf(n, 1.0F);
  exchange.publish(channel, make_float2(sum.x / n, sum.y / n), run);
  if (threadIdx.x % 32 != 0) return;
  float* gradients = tensors.workspace + plan.norm_gradients + finish.first_norm + channel;
  gradients[0] = sum.y;
  gradients[finish.channels] = sum.x;
}

}  // namespace gpunn::cuda_tiled
