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
//
// Of LeNet's time all but some 5 us are this kernel's. At step 4 that was: 9 until the first convolution is done, 4 in
// the second, 9 in dense layers, which is latency, not work, 12 in the convolutions' backward part.
#pragma once

#include "dependent_launch.cuh"
#include "step_batch.cuh"
#include "step_conv.cuh"
#include "step_dense.cuh"
#include "step_loss.cuh"
#include "step_plan.hpp"
#include "step_pool.cuh"
#include "step_sync.cuh"

namespace gpunn::cuda_tiled {

template <class B>
__device__ __forceinline__ void clear(const int (&stretch)[2]) {
  for (int i = stretch[0] / 4 + static_cast<int>(threadIdx.x); i < stretch[1] / 4; i += B::kThreads) {
    step_shared[i] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  }
}

// How much comes from the other blocks and from this one. That of the weights is known to who asks for them.
template <class B>
__device__ __forceinline__ void begin_arrivals(int rank) {
  const StepPlan& plan = shared_plan();
  StepArrivals& arrivals = shared_arrivals();
  begin_bytes(arrivals.weights);
  if (plan.n_convs > 0) {
    begin_bytes(arrivals.pooled);
    barrier_expect(&arrivals.pooled, B::kImages * plan.dense[0].inputs * 4);
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
__device__ __forceinline__ void copy_row(float* to, const float* from, int floats) {
  for (int i = static_cast<int>(threadIdx.x); i < floats / 4; i += B::kThreads) {
    reinterpret_cast<float4*>(to)[i] = reinterpret_cast<const float4*>(from)[i];
  }
}

// Where dense layer `layer`'s backward leaves the gradient of the layer below: masked, [row][image].
template <class B>
__device__ __forceinline__ void store_below(int layer, int from, int row, int image, float value) {
  const DensePlan& dense = shared_plan().dense[layer];
  const DensePlan& below = shared_plan().dense[layer - 1];
  float* shared = shared_floats();
  if (below.relu != 0 && !(shared[dense.x + image * dense.x_pitch + from + row] > 0.0F)) value = 0.0F;
  shared[below.dy + row * B::kImages + image] = value;
}

template <class B>
__device__ __forceinline__ void dense_forward(const StepTensors& tensors, int rank, int row) {
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
#pragma unroll 1
  for (int layer = 0; layer < plan.n_dense; ++layer) {
    const DensePlan& dense = plan.dense[layer];
    const bool last = layer + 1 == plan.n_dense;
    const int from = dense.sliced != 0 ? rank * dense.slice : 0;
    const int rows = min(dense.slice, dense.outputs - from);
    dense_product<B>(layer, rows);
    __syncthreads();
    dense_finish<B>(layer, rows, from, shared + (last ? plan.logits : plan.dense[layer + 1].x),
                    last ? plan.logits_pitch : plan.dense[layer + 1].x_pitch);
    if (row < plan.batch) {
      copy_row<B>(tensors.workspace + dense.x_rows + int64_t{row} * dense.x_pitch,
                  shared + dense.x + rank * dense.x_pitch, dense.x_pitch);
    }
    __syncthreads();  // the sums have been read
    if (dense.sliced != 0) wait_for_bytes(shared_arrivals().forward[layer]);
  }
}

template <class B>
__device__ __forceinline__ void dense_backward(const StepTensors& tensors, int rank, int row) {
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
#pragma unroll 1
  for (int layer = plan.n_dense - 1; layer >= 0; --layer) {
    const DensePlan& dense = plan.dense[layer];
    const int rows = min(dense.slice, dense.outputs - (dense.sliced != 0 ? rank * dense.slice : 0));
    // The factors of the weight gradient: of a sliced layer this block's columns for all images, else its own image's.
    // Behind the last column zeros, up to the pitch.
    const auto write_factors = [&] {
      float* dy_rows = tensors.workspace + dense.dy_rows;
      const int from = dense.sliced != 0 ? rank * dense.slice : 0;
      const int columns = rows > 0 && from + rows == dense.outputs ? dense.dy_pitch - from : rows;
      const auto dy = [&](int column, int image) {
        return column < rows ? shared[dense.dy + column * B::kImages + image] : 0.0F;
      };
      if (dense.sliced != 0) {
        for (int i = static_cast<int>(threadIdx.x); i < columns * B::kImages; i += B::kThreads) {
          const int column = i / B::kImages;
          const int image = i % B::kImages;
          const int image_row = row - rank + image;
          if (image_row < plan.batch) {
            dy_rows[int64_t{image_row} * dense.dy_pitch + from + column] = dy(column, image);
          }
        }
      } else if (row < plan.batch) {
        for (int i = static_cast<int>(threadIdx.x); i < columns; i += B::kThreads) {
          dy_rows[int64_t{row} * dense.dy_pitch + i] = dy(i, rank);
        }
      }
    };
    if (dense.backward_data != 0 && dense.sliced != 0) dense_scatter<B>(layer, rows, rank);
    write_factors();
    if (dense.backward_data == 0) break;
    if (layer > 0) {
      const DensePlan& below = plan.dense[layer - 1];
      const int from = below.sliced != 0 ? rank * below.slice : 0;
      const int count = min(below.slice, below.outputs - from);
      if (dense.sliced != 0) {
        wait_for_bytes(shared_arrivals().backward[layer]);
        for (int i = static_cast<int>(threadIdx.x); i < count * B::kImages; i += B::kThreads) {
          float sum = 0.0F;
#pragma unroll
          for (int source = 0; source < kStepShares; ++source) {
            sum += shared[dense.received + source * below.slice * B::kImages + i];
          }
          store_below<B>(layer, from, i / B::kImages, i % B::kImages, sum);
        }
      } else {
        dense_back<B>(layer, from, count,
                      [&](int input, int image, float value) { store_below<B>(layer, from, input, image, value); });
      }
      __syncthreads();
    } else {
      if (dense.sliced == 0) {
        dense_back<B>(layer, 0, dense.inputs, [&](int input, int image, float value) {
          if (image == rank) shared[dense.received + input] = value;
        });
      }
      __syncthreads();
      clear<B>(plan.zeros[1]);  // where w was
      __syncthreads();
      if (dense.sliced != 0) wait_for_bytes(shared_arrivals().backward[layer]);
    }
  }
}

// Tells the second kernel that this block has written its factors of the dense layers' weight gradients, all of it
// before a barrier of the block. By the last thread, whose warp has least to do.
template <class B>
__device__ __forceinline__ void announce_factors(const StepTensors& tensors) {
  if (threadIdx.x != B::kThreads - 1) return;
  __threadfence();
  atomicAdd(&tensors.noted->written, 1U);
}

template <class B>
__device__ __forceinline__ void conv_forward(int rank) {
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
#pragma unroll 1
  for (int layer = 0; layer < plan.n_convs; ++layer) {
    const ConvPlan& conv = plan.conv[layer];
    run_row_pass<B>(layer, false);
    __syncthreads();
    const bool last = layer + 1 == plan.n_convs;
    float* y = last ? shared + plan.dense[0].x + rank * plan.dense[0].x_pitch
                    : shared + plan.conv[layer + 1].x + plan.conv[layer + 1].x_left;
    const int y_plane = plan.conv[last ? layer : layer + 1].x_plane;
    const int y_pitch = plan.conv[last ? layer : layer + 1].x_pitch;
    finish_conv<B>(conv, [&](int filter, int row, int column, int i, float value) {
      if (!last) {
        y[filter * y_plane + row * y_pitch + column] = value;
        return;
      }
#pragma unroll
      for (int other = 0; other < B::kImages; ++other) store_remote(y + i, other, value, shared_arrivals().pooled);
    });
    if (last) wait_for_copies();
    __syncthreads();
  }
}

template <class B>
__device__ __forceinline__ void conv_backward(const StepTensors& tensors, int row) {
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const bool own = row < plan.batch;
  float* partial = tensors.workspace + plan.partial_rows + int64_t{row} * plan.partials;
#pragma unroll 1
  for (int layer = plan.n_convs; layer >= 0; --layer) {
    // What the layer above has left in the sums: its weights' gradient, and that of its x.
    if (layer < plan.n_convs && own) {
      const ConvPlan& above = plan.conv[layer];
      const int n = above.gradient.pitch;
      const float* sums = shared + above.gradient.sums;
      for (int i = thread; i < n; i += B::kThreads) {
        float sum = 0.0F;
#pragma unroll 4
        for (int split = 0; split < above.gradient.splits; ++split) sum += sums[split * n + i];
        partial[above.weight_from + i] = sum;
      }
    }
    if (layer == 0) break;
    const ConvPlan& conv = plan.conv[layer - 1];
    if (layer == plan.n_convs) {
      const DensePlan& dense = plan.dense[0];
      unpool<B>(conv, dense.sliced != 0 ? kStepShares : 1, dense.x_pitch,
                [&](int, int, int, int i) { return dense.received + i; });
    } else {
      const RowPass& dx = plan.conv[layer].backward;
      unpool<B>(conv, dx.splits, dx.filters * dx.out_rows * dx.pitch,
                [&](int filter, int r, int c, int) { return dx.sums + (filter * dx.out_rows + r) * dx.pitch + c; });
    }
    __syncthreads();
    if (layer == plan.n_convs) announce_factors<B>(tensors);
    int busy = 0;
    if (conv.backward_data != 0) {
      run_row_pass<B>(layer - 1, true);
      const RowPass& dx = conv.backward;
      busy = (dx.strips * dx.out_rows * dx.filter_tiles * dx.splits + 31) / 32 * 32 % B::kThreads;
    }
    const int turned = thread - busy;
    run_filter_gradient<B>(layer - 1, turned < 0 ? turned + B::kThreads : turned);
    // The padding of dy is zeros.
    for (int filter = B::kThreads / 32 - 1 - warp; filter < conv.filters; filter += B::kThreads / 32) {
      float sum = 0.0F;
      for (int i = lane; i < conv.dy_plane; i += 32) sum += shared[conv.dy + filter * conv.dy_plane + i];
      sum = warp_sum(sum);
      if (lane == 0 && own) partial[conv.bias_from + filter] = sum;
    }
    __syncthreads();
  }
}

template <class B>
__global__ void __launch_bounds__(B::kBound, B::kBlocks) step_pass(const StepTensors tensors) {
  __shared__ StepBatch batch;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int rank = B::kImages > 1 ? cluster_rank() : 0;
  const int row = static_cast<int>(blockIdx.x);  // of the batch
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();

  copy_plan(tensors.plan, step_shared, B::kThreads);
  __syncthreads();
  clear<B>(plan.zeros[0]);
  if (thread == 0) begin_arrivals<B>(rank);
  const int first_row = row - rank;
  constexpr int kWarps = B::kThreads / 32;
  if (warp == kWarps - 2) guess_batch(plan, tensors, first_row, B::kImages, batch);
  // The other blocks have begun, and what is cleared is cleared before somebody's pixels or weights come there.
  cluster_barrier();

  // The sample that this thread helps to fetch: while the kernel before still runs, and again should it turn out to be
  // another.
  const int image = plan.n_convs > 0 ? rank : thread / (B::kThreads / B::kImages);
  const auto fetch = [&](int index, int instead) {
    const bool known = index >= 0 && index < plan.data_rows;
    if (plan.n_convs > 0) {
      const ConvPlan& conv = plan.conv[0];
      float* x = shared + conv.x + conv.x_left;
      const auto put = [&](int at, float value) {
        const int line = divide(at, conv.by_width);  // of all channels: planes are `height` lines
        x[line * conv.x_pitch + at - line * conv.width] = value;
      };
      if (known) gather_sample<1>(plan, tensors, index, thread, B::kThreads, put);
      for (int at = thread; !known && instead >= 0 && at < plan.sample_size; at += B::kThreads) put(at, 0.0F);
    } else {
      constexpr int kFetchers = B::kThreads / B::kImages;
      float* x = shared + plan.dense[0].x + image * plan.dense[0].x_pitch;
      const int fetcher = thread % kFetchers;
      const auto put = [&](int at, float value) { x[at] = value; };
      if (known) gather_sample<5>(plan, tensors, index, fetcher, kFetchers, put);
      for (int at = fetcher; !known && instead >= 0 && at < plan.sample_size; at += kFetchers) put(at, 0.0F);
    }
  };
  fetch(batch.guess[image], -1);
  wait_for_kernel_before();
  // The second kernel must not start before it can see that this one has: so of the first block only this thread lets
  // it. It is one that has nothing to fetch.
  if (row == 0 && thread == (plan.n_convs > 0 ? B::kThreads - 1 : 32)) {
    atomicAdd(&tensors.noted->started, 1U);
    __threadfence();
    let_next_kernel_start();
  }
  if (row > 0) let_next_kernel_start();
  const auto stage_dense_layers = [&](int first_warp) {
    const int own = warp - first_warp;
    const int warps = kWarps - first_warp;
    stage_dense_in_bulk(tensors.parameters, rank, row / B::kImages, own, warps, shared_arrivals().weights);
    __syncwarp();
#pragma unroll 1
    for (int i = 0; i < plan.n_dense; ++i) stage_dense(i, tensors.parameters, rank, own, warps);
  };
  if (warp == kWarps - 2) find_batch(plan, tensors, first_row, B::kImages, batch);
  if (plan.n_convs == 0) {
    stage_dense_layers(0);
    wait_for_copies();
    wait_for_bytes(shared_arrivals().weights);
  } else {
    if (warp < kWarps - 2) stage_filters(tensors.parameters, thread, B::kThreads - 64, row);
    wait_for_copies();
  }
  __syncthreads();
  if (batch.again != 0) {
    if (batch.index[image] != batch.guess[image]) fetch(batch.index[image], batch.guess[image]);
    __syncthreads();
  }
  // The first convolution seldom has work for all warps, and would have to wait for dense weights.
  if (plan.n_convs > 0 && warp >= kWarps / 2) {
    stage_dense_layers(kWarps / 2);
#pragma unroll 1
    for (int i = 1; i < plan.n_convs; ++i) turn_filters(i, thread - B::kThreads / 2, B::kThreads / 2);
  }

  conv_forward<B>(rank);
  if (plan.n_convs > 0) {
    wait_for_bytes(shared_arrivals().weights);
    wait_for_bytes(shared_arrivals().pooled);
  }
  dense_forward<B>(tensors, rank, row);
  const int classes = plan.dense[plan.n_dense - 1].outputs;
  if (warp < B::kImages) {
    loss_gradient(plan, shared + plan.logits + warp * plan.logits_pitch, classes, row - rank + warp, batch.labels[warp],
                  batch.count, shared + plan.dense[plan.n_dense - 1].dy + warp, B::kImages);
  } else if (warp == B::kImages && row < plan.batch) {
    loss_of(plan, tensors, shared + plan.logits + rank * plan.logits_pitch, classes, row, batch.labels[rank]);
  }
  if (row == 0 && thread == B::kThreads - 1) {
    write_head(plan, tensors, batch.counter, batch.count);
    tensors.noted->expected = step_after(plan, batch.counter);
  }
  __syncthreads();
  dense_backward<B>(tensors, rank, row);
  if (plan.n_convs == 0) {
    __syncthreads();
    announce_factors<B>(tensors);
  }
  conv_backward<B>(tensors, row);
}

}  // namespace gpunn::cuda_tiled
