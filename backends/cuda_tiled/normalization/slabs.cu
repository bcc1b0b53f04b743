#include <algorithm>

#include "cuda_common/launch.hpp"
#include "dependent_launch.cuh"
#include "last_block.cuh"
#include "launch.hpp"
#include "normalization/channels_last.cuh"
#include "normalization/slabs.hpp"

namespace gpunn::cuda_tiled {
namespace {

constexpr int kColumns = 32;               // channels of a block, side by side
constexpr int kLines = kBlock / kColumns;  // threads of a channel
constexpr int kRead = 8;                   // slabs that a thread has in flight
constexpr int kLeastGroup = kLines * kRead;
constexpr int kBlocks = 264;  // two a multiprocessor

// Of the threads of a channel, in a fixed order; those of the first line have it.
template <class Value, class Both>
__device__ Value merge_lines(Value mine, const Both& both) {
  __shared__ Value of_thread[kBlock];
  of_thread[threadIdx.x] = mine;
  for (unsigned half = kLines / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x / kColumns >= half) continue;
    mine = both(mine, of_thread[threadIdx.x + half * kColumns]);
    of_thread[threadIdx.x] = mine;
  }
  __syncthreads();  // before it is used again
  return mine;
}

// A block puts a group of slabs together; the last block of a channel all groups. Calls finish(channel, all of it).
// `ways` says what a part of so many slabs from the first on stands for, how two are put together, and as which part
// they are kept.
template <class Ways, class Finish>
__device__ void join(const SlabPlan& plan, const float2* slabs, float2* of_groups, unsigned* counters, const Ways& ways,
                     const Finish& finish) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x % kColumns;
  const int line = static_cast<int>(threadIdx.x) / kColumns;
  const bool active = channel < plan.channels;
  const auto both = [&](const auto& left, const auto& right) { return ways.both(left, right); };
  const int begin = static_cast<int>(blockIdx.y) * plan.group, end = min(begin + plan.group, plan.slabs);
  auto mine = ways.nothing();
  for (int first = begin + line; active && first < end; first += kLines * kRead) {
    float2 read[kRead];
#pragma unroll
    for (int j = 0; j < kRead; ++j) {
      const int i = first + j * kLines;
      if (i < end) read[j] = slabs[i * plan.channels + channel];
    }
#pragma unroll
    for (int j = 0; j < kRead; ++j) {
      const int i = first + j * kLines;
      if (i < end) mine = both(mine, ways.value(read[j], i, 1));
    }
  }
  mine = merge_lines(mine, both);
  if (plan.groups > 1) {
    if (line == 0 && active) of_groups[blockIdx.y * plan.channels + channel] = ways.part(mine);
    const BlockTurn turn(counters + blockIdx.x, static_cast<unsigned>(plan.groups));
    if (!turn.is_last()) return;
    mine = ways.nothing();
    for (int i = line; active && i < plan.groups; i += kLines) {
      const float2 part = __ldcg(of_groups + i * plan.channels + channel);
      mine = both(mine, ways.value(part, i * plan.group, plan.group));
    }
    mine = merge_lines(mine, both);
  }
  if (line == 0 && active) finish(channel, mine);
}

// Of means and squares, by the rows that count.
struct MomentsOfSlabs {
  int64_t counted;
  const SlabRows& of_slab;

  static __device__ Moments nothing() { return {0.0F, 0.0F, 0.0F}; }
  static __device__ Moments both(const Moments& a, const Moments& b) { return merge(a, b); }
  static __device__ float2 part(const Moments& all) { return make_float2(all.mean, all.squares); }
  __device__ Moments value(float2 part, int first, int slabs) const {
    const int64_t rows = min(of_slab.before(first + slabs), counted) - min(of_slab.before(first), counted);
    return {static_cast<float>(rows), part.x, part.y};
  }
};

struct SumsOfSlabs {
  static __device__ float2 nothing() { return make_float2(0.0F, 0.0F); }
  static __device__ float2 both(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
  static __device__ float2 part(float2 all) { return all; }
  static __device__ float2 value(float2 part, int /*first*/, int /*slabs*/) { return part; }
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    join_slabs(Forward<T> f, SlabPlan plan, const float2* slabs, float2* of_groups, unsigned* counters) {
  let_next_kernel_start();
  wait_for_kernel_before();
  const int64_t counted =
      f.count == nullptr ? plan.rows : min(static_cast<int64_t>(max(*f.count, 0)) * plan.pixels, plan.rows);
  join(plan, slabs, of_groups, counters, MomentsOfSlabs{counted, plan.of_slab},
       [&](int64_t channel, const Moments& all) { channels_last::keep_statistics(f, channel, all); });
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    join_gradient_slabs(Backward<T> b, SlabPlan plan, const float2* slabs, float2* of_groups, unsigned* counters) {
  let_next_kernel_start();
  wait_for_kernel_before();
  join(plan, slabs, of_groups, counters, SumsOfSlabs{}, [&](int64_t channel, float2 all) {
    b.dgamma[channel] = all.y * b.rstd[channel];
    b.dbeta[channel] = all.x;
  });
}

int64_t tiles_of(const SlabPlan& plan) { return cuda::divide_up(plan.channels, kColumns); }

}  // namespace

uint64_t SlabPlan::slab_bytes() const {
  return static_cast<uint64_t>(slabs) * static_cast<uint64_t>(channels) * sizeof(float2);
}

uint64_t SlabPlan::workspace_bytes() const {
  return slab_bytes() + static_cast<uint64_t>(groups) * static_cast<uint64_t>(channels) * sizeof(float2);
}

std::size_t SlabPlan::counters() const { return static_cast<std::size_t>(tiles_of(*this)); }

SlabPlan slab_plan(const backends::BatchNorm& shape, int slabs, const SlabRows& of_slab) {
  SlabPlan plan{.rows = shape.rows * shape.size,
                .channels = shape.channels,
                .pixels = shape.size,
                .of_slab = of_slab,
                .slabs = slabs};
  const int64_t groups = std::max<int64_t>(1, kBlocks / tiles_of(plan));
  plan.group = static_cast<int>(std::max<int64_t>(kLeastGroup, cuda::divide_up(int64_t{plan.slabs}, groups)));
  plan.groups = std::max(1, cuda::divide_up(plan.slabs, plan.group));
  return plan;
}

template <class T>
void run_batch_norm_of_slabs(const backends::BatchNorm& shape, const SlabPlan& slabs, const Forward<T>& f,
                             float2* workspace, unsigned* counters, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(tiles_of(slabs)), static_cast<unsigned>(slabs.groups));
  launch_with(join_slabs<T>, {grid, dim3(kBlock)}, {.early = true}, stream, f, slabs, workspace,
              workspace + static_cast<int64_t>(slabs.slabs) * slabs.channels, counters);
  normalise_channels_last(shape, f, stream);
}

template <class T>
void run_batch_norm_backward_of_slabs(const backends::BatchNorm& shape, const SlabPlan& slabs, const Backward<T>& b,
                                      float2* workspace, unsigned* counters, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(tiles_of(slabs)), static_cast<unsigned>(slabs.groups));
  launch_with(join_gradient_slabs<T>, {grid, dim3(kBlock)}, {.early = true}, stream, b, slabs, workspace,
              workspace + static_cast<int64_t>(slabs.slabs) * slabs.channels, counters);
  flow_back_channels_last(shape, b, stream);
}

template void run_batch_norm_of_slabs(const backends::BatchNorm&, const SlabPlan&, const Forward<__nv_bfloat16>&,
                                      float2*, unsigned*, cudaStream_t);
template void run_batch_norm_of_slabs(const backends::BatchNorm&, const SlabPlan&, const Forward<__half>&, float2*,
                                      unsigned*, cudaStream_t);
template void run_batch_norm_backward_of_slabs(const backends::BatchNorm&, const SlabPlan&,
                                               const Backward<__nv_bfloat16>&, float2*, unsigned*, cudaStream_t);
template void run_batch_norm_backward_of_slabs(const backends::BatchNorm&, const SlabPlan&, const Backward<__half>&,
                                               float2*, unsigned*, cudaStream_t);

}  // namespace gpunn::cuda_tiled
