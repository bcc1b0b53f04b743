// Kernel 1 of a step: forward, loss and backward. Weight gradients of convolutions leave it as a sum an image, those of
// dense layers as their factors; step_update.cuh does the rest.
//
// 1. A block an image, clusters of 8 blocks, all activations in shared memory, nothing written but the factors. A dense
//    layer's weights don't fit beside LeNet's activations, so a block has the rows of w (and those of its transpose)
//    for an eighth of the outputs, makes them for all images of the cluster and stores them into all of its blocks;
//    layers of up to 4096 weights are rather made by every block. H200, LeNet-5 at batch 128: 95 us a step, the MLP
//    784-128-10 31: of clusters of 8 that fill their multiprocessors only 15 fit, not 16, and so the kernel runs twice
//    as long.
// 2. w kept once: backward scatters shares of dx instead (step_dense.cuh). What only one part of the kernel needs lies
//    where another had its own, so that two blocks fit a multiprocessor. The plan lies in shared memory: as an
//    argument, indexed by the layer, each of its fields was a slow read. 58 and 21 us.
// 3. Clusters of 2 where convolutions run first: the weights, four times as many a block, come meanwhile. The second
//    kernel draws the samples of the next step, 120 dependent multiplications each, while others wait. 42 and 20 us.
//
// 4. Nothing after the end of the step before that could be done earlier: samples are drawn two steps ahead, pixels
//    fetched before it. What all blocks read at once is read by one warp of each, and each block begins elsewhere: one
//    part of the L2 cache serves all of them. Filters are loaded all at once and turned round within the block; dense
//    weights come in bulk. What blocks of a cluster send each other is counted where it arrives (step_sync.cuh); a
//    barrier of the cluster costs a fence of all memory. The second kernel's dense tiles don't wait for the
//    convolutions' backward part. 39.7 and 17.7 us.
// 5. No calls: what was a function of its own for the sake of short code is inlined, 38.1 and 16.9 us. Rows of dense
//    weights are asked for by half of the warps, not by one, which the first convolution had to wait for; and networks
//    without convolutions keep their L1 cache. 36.8 and 16.1 us.
// 6. Beside each other, what was one after the other. The last warp asks for dense weights, a lane a row, while the
//    others are at the convolutions and don't wait for it. Where filters go is computed before they may be read. The
//    next step's blocks may begin when the second kernel has, and have their pixels, which this step has brought to the
//    L2 cache, when it ends: 1.2 us of LeNet's. The second kernel fetches one factor of the dense gradients, x, while
//    the other one is made. Convolutions' backward without zeros (step_sparse.cuh). 32.6 and 14.9 us. A kernel for each
//    kind of filters (StepCode), as what runs was scattered over too much code: 31.4 and 14.5 us.
//
// Of LeNet's time at step 5 all but some 5 us were this kernel's: 2 until filters had come, 6 in the first convolution,
// 2.5 of which waited for warps that asked for dense weights, 4 in the second, 10 in dense layers and loss, which is
// latency, not work, 13 in the convolutions' backward part. Tried and slower: dense products with 4 images a thread and
// sums over the lanes of a warp; the last layer and the loss by one warp an image.
#pragma once

#include <type_traits>

#include "dependent_launch.cuh"
#include "step_batch.cuh"
#include "step_layers.cuh"
#include "step_plan.hpp"
#include "step_sync.cuh"

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
