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
__device__ Moments merge_lines(Moments mine) {
  __shared__ Moments of_thread[kBlock];
  of_thread[threadIdx.x] = mine;
  for (unsigned half = kLines / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x / kColumns >= half) continue;
    mine = merge(mine, of_thread[threadIdx.x + half * kColumns]);
    of_thread[threadIdx.x] = mine;
  }
  __syncthreads();  // before it is used again
  return mine;
}

// A block puts a group of slabs together; the last block of a channel all groups.
template <class T>
__global__ void __launch_bounds__(kBlock)
    join_slabs(Forward<T> f, SlabPlan plan, const float2* slabs, float2* of_groups, unsigned* counters) {
  let_next_kernel_start();
  wait_for_kernel_before();
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x % kColumns;
  const int line = static_cast<int>(threadIdx.x) / kColumns;
  const bool active = channel < plan.channels;
  const int64_t counted =
      f.count == nullptr ? plan.rows : min(static_cast<int64_t>(max(*f.count, 0)) * plan.pixels, plan.rows);
  const auto rows_of = [&](int64_t first, int64_t rows) {
    return static_cast<float>(min(max(counted - first, int64_t{0}), rows));
  };
  const int begin = static_cast<int>(blockIdx.y) * plan.group, end = min(begin + plan.group, plan.slabs);
  Moments mine{0.0F, 0.0F, 0.0F};
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
      if (i < end) mine = merge(mine, {rows_of(int64_t{i} * plan.slab_rows, plan.slab_rows), read[j].x, read[j].y});
    }
  }
  mine = merge_lines(mine);
  if (plan.groups > 1) {
    if (line == 0 && active) of_groups[blockIdx.y * plan.channels + channel] = make_float2(mine.mean, mine.squares);
    const BlockTurn turn(counters + blockIdx.x, static_cast<unsigned>(plan.groups));
    if (!turn.is_last()) return;
    mine = {0.0F, 0.0F, 0.0F};
    const int64_t group_rows = int64_t{plan.group} * plan.slab_rows;
    for (int i = line; active && i < plan.groups; i += kLines) {
      const float2 part = __ldcg(of_groups + i * plan.channels + channel);
      mine = merge(mine, {rows_of(i * group_rows, group_rows), part.x, part.y});
    }
    mine = merge_lines(mine);
  }
  if (line == 0 && active) channels_last::keep_statistics(f, channel, mine);
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

SlabPlan slab_plan(const backends::BatchNorm& shape, int slab_rows) {
  SlabPlan plan{.rows = shape.rows * shape.size,
                .channels = shape.channels,
                .pixels = shape.size,
                .slab_rows = slab_rows,
                .slabs = static_cast<int>(cuda::divide_up(shape.rows * shape.size, slab_rows))};
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

template void run_batch_norm_of_slabs(const backends::BatchNorm&, const SlabPlan&, const Forward<__nv_bfloat16>&,
                                      float2*, unsigned*, cudaStream_t);
template void run_batch_norm_of_slabs(const backends::BatchNorm&, const SlabPlan&, const Forward<__half>&, float2*,
                                      unsigned*, cudaStream_t);

}  // namespace gpunn::cuda_tiled
