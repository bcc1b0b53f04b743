// Kernel 1 of a step: forward pass, loss and backward pass. It leaves the weight gradients of convolutions as one sum
// an image, and those of dense layers as their factors; update.cuh does the rest.
//
// One thread block computes one image, and all activations stay in shared memory. A dense layer's weights don't fit
// beside LeNet's activations, so the blocks of a cluster share them. Each block has the rows of w for a part of the
// outputs, computes them for all images of the cluster and stores them into all of its blocks. Every block computes
// layers of up to 4096 weights itself. w is stored once: the backward pass scatters shares of dx instead
// (dense.cuh).
//
// Clusters have 8 blocks, or 2 if convolutions run first, because their time hides the loading of four times as many
// weights a block. Phases of the kernel reuse each other's buffers, so that two blocks fit a multiprocessor. The plan
// lies in shared memory, since indexed kernel arguments are slow to read.
//
// Several kinds of work are hidden behind other work:
//   - Samples are drawn two steps ahead, 120 dependent multiplications each, in the second kernel. Pixels are fetched
//     before the previous step ends, and this step brings those of the next step to the L2 cache.
//   - One warp of each block reads the data that all blocks need. Each block begins at another place, since one part of
//     the L2 cache serves all of them.
//   - Filters are loaded all at once and rotated within the block. The last warp issues the bulk copies of the dense
//     weights, one row a lane, during the convolutions. Filter addresses are computed before the filters may be read.
//   - The receiver counts the data that the blocks of a cluster send (sync.cuh), because a barrier of the cluster
//     costs a fence of all memory.
//   - The next step's blocks may start once the second kernel has. The second kernel's dense tiles don't wait for the
//     backward convolutions, and it fetches the factor x of the dense gradients while dy is computed.
//
// The backward convolutions skip zeros (sparse.cuh). Functions are inlined, and each kind of filters has its own
// kernel (StepCode), so that little unused code lies between the code that runs.
//
// H200, a step at batch 128: LeNet-5 31.4 us, the MLP 784-128-10 14.5 us.
#pragma once

#include <type_traits>

#include "dependent_launch.cuh"
#include "subgraphs/step/batch.cuh"
#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/layers.cuh"
#include "subgraphs/step/plan.hpp"
#include "subgraphs/step/sync.cuh"

namespace gpunn::cuda_tiled {

// How much comes from the other blocks and from this one. That of the weights is known to who asks for them.
template <class B>
__device__ __forceinline__ void begin_arrivals(int rank) {
  const StepPlan& plan = shared_plan();
  StepArrivals& arrivals = shared_arrivals();
  begin_bytes(arrivals.weights);
  if (plan.n_convs > 0) {
    for (uint64_t& barrier : arrivals.convs) barrier_init(&barrier, WithoutLastWarp<B>::kThreads);
    begin_bytes(arrivals.pooled);
    barrier_expect(&arrivals.pooled, B::kImages * plan.dense[0].inputs * 4);
    if constexpr (B::kNorms || B::kFinishes) {
      for (int i = 0; i < kStepMeetings; ++i) barrier_init(shared_meetings() + i, WithoutLastWarp<B>::kThreads);
    }
  }
#pragma unroll 1
  for (int layer = 0; layer < plan.n_dense; ++layer) {
    const DensePlan& dense = plan.dense[layer];
    if (dense.sliced == 0) continue;
    begin_bytes(arrivals.forward[layer]);
    barrier_expect(&arrivals.forward[layer], B::kImages * ((dense.outputs + 3) / 4 * 4) * 4);
    if (dense.backward_data == 0) continue;
    int floats = (dense.inputs + 3) / 4 * 4;  // of its image
    if (layer > 0) {
      const DensePlan& below = plan.dense[layer - 1];
      floats = B::kImages * max(min(below.slice, below.outputs - rank * below.slice), 0);
    }
    begin_bytes(arrivals.backward[layer]);
    barrier_expect(&arrivals.backward[layer], kStepShares * floats * 4);
  }
}

template <class B>
__device__ __forceinline__ void make_pass(const TensorsOf<B>& tensors) {
  __shared__ StepBatch batch;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int rank = B::kImages > 1 ? cluster_rank() : 0;
  const int row = static_cast<int>(blockIdx.x);  // of the batch
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
  constexpr bool convs = B::kColumns != kNoFilters;

  copy_plan<B::kGeneral>(tensors.plan, step_shared, B::kThreads);
  __syncthreads();
  clear<B>(plan.zeros[0]);
  if (thread == 0) begin_arrivals<B>(rank);
  const int first_row = row - rank;
  constexpr int kWarps = B::kThreads / 32;
  bool ready = false;
  if constexpr (B::kBatches) ready = plan.ready != 0;
  if (warp == kWarps - 2) {
    if (ready) {
      if (thread % 32 < B::kImages) batch.guess[thread % 32] = -1;
    } else {
      guess_batch(plan, tensors, first_row, B::kImages, batch);
    }
  }
  // The other blocks have begun, and what is cleared is cleared before pixels or weights come there.
  cluster_barrier();

  // The sample that this thread helps to fetch: while the kernel before still runs, and again should it turn out to be
  // another.
  constexpr int kFetchers = B::kThreads - 64;
  static_assert(kFetchers % B::kImages == 0);
  const int image = convs || thread >= kFetchers ? rank : thread / (kFetchers / B::kImages);
  const auto fetch = [&](int index, int instead, int64_t step) {
    const bool known = index >= 0 && (ready || index < plan.data_rows);
    const auto gather = [&]<int kAhead>(std::integral_constant<int, kAhead>, int from, int fetchers, auto put) {
      if constexpr (B::kBatches) {
        if (ready) return copy_sample(plan, tensors, index, from, fetchers, put);
        if (plan.shifted != 0) {
          return gather_shifted(plan, tensors, index, step, first_row + image, from, fetchers, put);
        }
      }
      gather_sample<kAhead>(plan, tensors, index, from, fetchers, put);
    };
    if (convs) {
      const ConvPlan& conv = plan.conv[0];
      float* x = shared + conv.x + conv.x_left;
      const auto put = [&](int at, float value) {
        const int line = divide(at, conv.by_width);  // of all channels: planes are `height` lines
        x[line * conv.x_pitch + at - line * conv.width] = value;
      };
      if (known) gather(std::integral_constant<int, 1>{}, thread, kFetchers, put);
      for (int at = thread; !known && instead >= 0 && at < plan.sample_size; at += kFetchers) put(at, 0.0F);
    } else {
      constexpr int kOfImage = kFetchers / B::kImages;
      float* x = shared + plan.dense[0].x + image * plan.dense[0].x_pitch;
      const int fetcher = thread % kOfImage;
      const auto put = [&](int at, float value) { x[at] = value; };
      if (known) gather(std::integral_constant<int, 5>{}, fetcher, kOfImage, put);
      for (int at = fetcher; !known && instead >= 0 && at < plan.sample_size; at += kOfImage) put(at, 0.0F);
    }
  };
  if (warp == kWarps - 2 && !ready) guess_labels(plan, tensors, B::kImages, batch);
  if (thread < kFetchers) fetch(batch.guess[image], -1, batch.expected);
  FilterPlaces filters;
  if (convs && warp < kWarps - 2) filters = filter_places(thread, B::kThreads - 64, row);
  wait_for_kernel_before();
  const bool last_warp = warp == kWarps - 1;
  // The second kernel must not start before it can see that this one has: so of the first block only this thread lets
  // it. It is one that has nothing to fetch.
  if (row == 0 && thread == B::kThreads - 1) {
    atomicAdd(&tensors.noted->started, 1U);
    __threadfence();
    let_next_kernel_start();
  }
  if (row > 0) let_next_kernel_start();
  if constexpr (B::kNorms) {
    if (thread == 0) {
      copy_async<4>(reinterpret_cast<float*>(&batch.run), reinterpret_cast<const float*>(&tensors.noted->runs));
    }
  }
  const auto stage_dense_layers = [&](int own, int warps) {
    stage_dense_in_bulk(tensors.parameters, rank, row / B::kImages, own, warps, shared_arrivals().weights);
    __syncwarp();
#pragma unroll 1
    for (int i = 0; i < plan.n_dense; ++i) stage_dense(i, tensors.parameters, rank, own, warps);
  };
  if (warp == kWarps - 2) {
    if constexpr (B::kBatches) {
      if (ready) find_ready_batch(plan, tensors, first_row, B::kImages, batch);
    }
    if (!ready) find_batch(plan, tensors, first_row, B::kImages, batch);
  }
  if (!convs) {
    stage_dense_layers(warp, kWarps);
    wait_for_copies();
    wait_for_bytes(shared_arrivals().weights);
  } else {
    if (warp < kWarps - 2) stage_filters(tensors.parameters, filters, thread, B::kThreads - 64, row);
    wait_for_copies();
  }
  __syncthreads();
  // As soon as is known: the next step's blocks may begin while this one's still run.
  if (row == 0 && thread == B::kThreads - 1) tensors.noted->expected = step_after(plan, batch.counter);
  bool again = batch.again != 0;
  if constexpr (B::kBatches) again = again || (plan.shifted != 0 && batch.counter != batch.expected);
  if (again) {
    bool wrong = batch.index[image] != batch.guess[image];
    if constexpr (B::kBatches) wrong = wrong || (plan.shifted != 0 && batch.counter != batch.expected);
    if (thread < kFetchers && wrong) fetch(batch.index[image], batch.guess[image], batch.counter);
    __syncthreads();
  }
  if constexpr (convs) {
    if (last_warp) {
      // All blocks wait for what this one reduces, while its weights have time.
      if constexpr (B::kNorms) {
#pragma unroll 1
        for (int layer = 0; layer < plan.n_convs; ++layer) {
          reduce_conv_statistics(tensors, batch, row, layer);
          if (layer == 0) stage_dense_layers(0, 1);
        }
      } else {
        stage_dense_layers(0, 1);
      }
      wait_for_copies();
    } else {
      conv_forward<B>(tensors, batch, rank, row);
    }
    __syncthreads();
    wait_for_bytes(shared_arrivals().weights);
    wait_for_bytes(shared_arrivals().pooled);
  }
  dense_forward<B>(tensors, batch, rank, row);
  make_loss<B>(tensors, batch, rank, row);
  if (warp == kWarps - 2 && !ready) prefetch_sample(plan, tensors, step_after(plan, batch.counter), row);
  if (row == 0 && thread == B::kThreads - 1) write_head(plan, tensors, batch.counter, batch.count);
  __syncthreads();
  announce<B>(tensors.noted->inputs);
  dense_backward<B>(tensors, batch, rank, first_row);
  if (!convs) announce<B>(tensors.noted->written);
  if constexpr (convs) conv_backward<B>(tensors, batch, rank, row);
}

template <class B>
__global__ void __launch_bounds__(B::kBound, B::kBlocks) step_pass(const __grid_constant__ TensorsOf<B> tensors) {
#if __CUDA_ARCH__ >= 900
  make_pass<B>(tensors);
#endif
}

}  // namespace gpunn::cuda_tiled
