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
// Of LeNet's 42 us some 35 are this kernel's: 7 until the pixels are there, 15 in convolutions, 10 in dense layers,
// which is latency, not work. What the next version would change: 4-byte copies of the filters meet few banks; the
// second kernel's blocks find no room before this one has ended; the filter gradients and dx of a layer leave threads
// idle.
#pragma once

#include <climits>

#include "dependent_launch.cuh"
#include "step_batch.cuh"
#include "step_conv.cuh"
#include "step_dense.cuh"
#include "step_plan.hpp"
#include "step_sync.cuh"

namespace gpunn::cuda_tiled {

// The sums of row_pass(), bias, ReLU and the largest of each window, to put(filter, row, column, i, value); notes which
// was the largest.
template <class B, class Put>
__device__ __forceinline__ void finish_conv(const ConvPlan& conv, Put put) {
  const float* shared = shared_floats();
  const int size = conv.pooled_height * conv.pooled_width;
  const int pitch = conv.forward.pitch;
  const int splits = conv.forward.splits;
  const int a_filter = conv.forward.out_rows * pitch;
  const int a_split = conv.filters * a_filter;
  const bool two_by_two = conv.window_rows == 2 && conv.window_columns == 2;
  for (int i = static_cast<int>(threadIdx.x); i < conv.filters * size; i += B::kThreads) {
    const int filter = divide(i, conv.by_plane);
    const int place = i - filter * size;
    const int row = divide(place, conv.by_row);
    const int column = place - row * conv.pooled_width;
    const float* window =
        shared + conv.forward.sums + filter * a_filter + row * conv.stride_rows * pitch + column * conv.stride_columns;
    const float b = shared[conv.bias + filter];
    float most = 0.0F;
    int which = 0;
    const auto look = [&](int at, float value) {
      value += b;
      if (conv.relu != 0 && value < 0.0F) value = 0.0F;
      if (at == 0 || value > most || (isnan(value) && !isnan(most))) {
        most = value;
        which = at;
      }
    };
    if (two_by_two) {
      float value[4] = {};
      for (int split = 0; split < splits; ++split) {
        value[0] += window[0];
        value[1] += window[1];
        value[2] += window[pitch];
        value[3] += window[pitch + 1];
        window += a_split;
      }
#pragma unroll
      for (int at = 0; at < 4; ++at) look(at, value[at]);
    } else {
      int at = 0;
      for (int r = 0; r < conv.window_rows; ++r) {
        for (int c = 0; c < conv.window_columns; ++c) {
          float value = 0.0F;
          for (int split = 0; split < splits; ++split) value += window[split * a_split + r * pitch + c];
          look(at++, value);
        }
      }
    }
    shared_bytes()[conv.chosen + i] = static_cast<uint8_t>(conv.relu != 0 && !(most > 0.0F) ? 255 : which);
    put(filter, row, column, i, most);
  }
}

// Puts the gradient of each window where its largest element was: the sum of `terms` numbers that lie `apart`, the
// first at get(filter, row, column, i).
template <class B, class Get>
__device__ __forceinline__ void unpool(const ConvPlan& conv, int terms, int apart, Get get) {
  float* shared = shared_floats();
  const int size = conv.pooled_height * conv.pooled_width;
  for (int i = static_cast<int>(threadIdx.x); i < conv.filters * size; i += B::kThreads) {
    const int which = shared_bytes()[conv.chosen + i];
    if (which == 255) continue;
    const int filter = divide(i, conv.by_plane);
    const int place = i - filter * size;
    const int row = divide(place, conv.by_row);
    const int column = place - row * conv.pooled_width;
    const int r = divide(which, conv.by_window);
    const int c = which - r * conv.window_columns;
    const float* from = shared + get(filter, row, column, i);
    float sum = 0.0F;
#pragma unroll 4
    for (int term = 0; term < terms; ++term) sum += from[term * apart];
    shared[conv.dy + filter * conv.dy_plane + (row * conv.stride_rows + r) * conv.dy_pitch + conv.dy_left +
           column * conv.stride_columns + c] = sum;
  }
}

template <class B>
__device__ __forceinline__ void clear(const int (&stretch)[2]) {
  for (int i = stretch[0] / 4 + static_cast<int>(threadIdx.x); i < stretch[1] / 4; i += B::kThreads) {
    step_shared[i] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  }
}

template <class B>
__device__ __forceinline__ void copy_row(float* to, const float* from, int floats) {
  for (int i = static_cast<int>(threadIdx.x); i < floats / 4; i += B::kThreads) {
    reinterpret_cast<float4*>(to)[i] = reinterpret_cast<const float4*>(from)[i];
  }
}

__device__ __forceinline__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFU, value, step));
  return value;
}

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, step);
  return value;
}

// Softmax with cross-entropy of one row of logits, by a warp: the gradient, and for the image's own block the loss and
// the label's rank. All orders are fixed.
__device__ __noinline__ void loss_row(const StepPlan& plan, const StepTensors& tensors, const float* logits,
                                      int classes, int row, int label, int count, bool own, float* d, int apart) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  float most = -INFINITY;
  bool nan = false;
  for (int c = lane; c < classes; c += 32) {
    most = fmaxf(most, logits[c]);
    nan = nan || isnan(logits[c]);
  }
  most = warp_max(most);
  nan = __any_sync(0xFFFFFFFFU, nan ? 1 : 0) != 0;
  float sum = 0.0F;
  for (int c = lane; c < classes; c += 32) sum += expf(logits[c] - most);
  const float log_sum = logf(warp_sum(sum));
  const bool known = label >= 0 && label < classes;
  const float share = row < count ? plan.loss_gradient / static_cast<float>(count) : 0.0F;
  for (int c = lane; c < classes; c += 32) {
    const float probability = expf(logits[c] - most - log_sum);
    d[c * apart] = known ? share * (probability - (c == label ? 1.0F : 0.0F)) : 0.0F;
  }
  if (!own) return;
  int before = 0;
  if (known) {
    const float mine = logits[label];
    for (int c = lane; c < classes; c += 32) {
      before += logits[c] > mine || (logits[c] == mine && c < label) ? 1 : 0;
    }
  }
  before = warp_sum(before);
  if (lane == 0) {
    tensors.workspace[plan.losses + row] = known ? -(logits[label] - most - log_sum) : NAN;
    reinterpret_cast<int*>(tensors.workspace + plan.ranks)[row] = !known ? INT_MAX : nan ? classes : before;
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
    if (row < plan.batch) {
      copy_row<B>(tensors.workspace + dense.x_rows + int64_t{row} * dense.x_pitch,
                  shared + dense.x + rank * dense.x_pitch, dense.x_pitch);
    }
    dense_product<B>(layer, rows);
    __syncthreads();
    dense_finish<B>(layer, rows, from, shared + (last ? plan.logits : plan.dense[layer + 1].x),
                    last ? plan.logits_pitch : plan.dense[layer + 1].x_pitch);
    if (dense.sliced != 0) cluster_sync();
    __syncthreads();
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
    float* dy_rows = tensors.workspace + dense.dy_rows;
    if (dense.sliced != 0) {
      for (int i = static_cast<int>(threadIdx.x); i < rows * B::kImages; i += B::kThreads) {
        const int image_row = row - rank + i % B::kImages;
        if (image_row < plan.batch) {
          dy_rows[int64_t{image_row} * dense.dy_pitch + rank * dense.slice + i / B::kImages] = shared[dense.dy + i];
        }
      }
    } else if (row < plan.batch) {
      for (int i = static_cast<int>(threadIdx.x); i < rows; i += B::kThreads) {
        dy_rows[int64_t{row} * dense.dy_pitch + i] = shared[dense.dy + i * B::kImages + rank];
      }
    }
    if (dense.backward_data == 0) break;
    if (layer > 0) {
      const DensePlan& below = plan.dense[layer - 1];
      const int from = below.sliced != 0 ? rank * below.slice : 0;
      const int count = min(below.slice, below.outputs - from);
      if (dense.sliced != 0) {
        dense_scatter<B>(layer, rows, rank);
        cluster_sync();
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
      if (dense.sliced != 0) {
        dense_scatter<B>(layer, rows, rank);
      } else {
        dense_back<B>(layer, 0, dense.inputs, [&](int input, int image, float value) {
          if (image == rank) shared[dense.received + input] = value;
        });
      }
      __syncthreads();
      clear<B>(plan.zeros[2]);  // where w was
      if (dense.sliced != 0) cluster_sync();
      __syncthreads();
    }
  }
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
    if (last) cluster_wait();  // for the other blocks to have begun
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
      for (int other = 0; other < B::kImages; ++other) store_remote(y + i, other, value);
    });
    if (last) {
      wait_for_copies<0>();
      __syncthreads();
      clear<B>(plan.zeros[1]);  // where the sums were
      cluster_sync();
    }
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
__global__ void __launch_bounds__(B::kThreads, B::kBlocks) step_pass(const StepTensors tensors) {
  __shared__ StepBatch drawn;
  __shared__ int labels[B::kImages];
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int rank = B::kImages > 1 ? cluster_rank() : 0;
  const int row = static_cast<int>(blockIdx.x);  // of the batch
  const StepPlan& plan = shared_plan();
  float* shared = shared_floats();

  copy_plan(tensors.plan, step_shared, B::kThreads);
  __syncthreads();
  clear<B>(plan.zeros[0]);
  if (plan.n_convs == 0) clear<B>(plan.zeros[1]);
  cluster_arrive();  // waited for before the first store to another block
  wait_for_kernel_before();
  let_next_kernel_start();
  __syncthreads();  // what is cleared is cleared before somebody's pixels or weights come there

  // The sample that this thread helps to fetch, as the step before noted it.
  const int first_row = row - rank;
  const int image = plan.n_convs > 0 ? rank : thread / (B::kThreads / B::kImages);
  const auto* noted = reinterpret_cast<const int32_t*>(tensors.next + 1);
  const int64_t step = max(*tensors.step, int64_t{0});
  const int64_t noted_step = tensors.next->step;
  int count = static_cast<int>(tensors.next->count);
  int index = first_row + image < plan.batch ? noted[first_row + image] : -1;
  int label = thread < B::kImages && first_row + thread < plan.batch ? noted[first_row + thread] : -1;
#pragma unroll 1
  for (int i = 0; i < plan.n_convs; ++i) stage_conv(i, tensors.parameters, thread, B::kThreads);
  commit_copies();
#pragma unroll 1
  for (int i = 0; i < plan.n_dense; ++i) stage_dense(i, tensors.parameters, rank, warp, B::kThreads / 32);
  commit_copies();
  if (noted_step != step) {  // the same for all threads
    find_batch(tensors, step, first_row, B::kImages, drawn);
    __syncthreads();
    index = drawn.index[image];
    if (thread < B::kImages) label = drawn.index[thread];
    count = drawn.count;
  }
  if (thread < B::kImages) label = label_of(plan, tensors.labels, label);
  if (plan.n_convs > 0) {
    const ConvPlan& conv = plan.conv[0];
    float* x = shared + conv.x + conv.x_left;
    gather_sample(plan, tensors, index, thread, B::kThreads, [&](int at, float value) {
      const int line = divide(at, conv.by_width);  // of all channels: planes are `height` lines
      x[line * conv.x_pitch + at - line * conv.width] = value;
    });
    wait_for_copies<1>();  // the filters
  } else {
    constexpr int kFetchers = B::kThreads / B::kImages;
    float* x = shared + plan.dense[0].x + image * plan.dense[0].x_pitch;
    gather_sample(plan, tensors, index, thread % kFetchers, kFetchers, [&](int at, float value) { x[at] = value; });
    wait_for_copies<0>();
  }
  if (thread < B::kImages) labels[thread] = label;
  if (row == 0 && thread == B::kThreads - 1) write_head(plan, tensors, count);
  __syncthreads();

  conv_forward<B>(rank);
  if (plan.n_convs == 0) cluster_wait();
  dense_forward<B>(tensors, rank, row);
  if (warp < B::kImages) {
    const DensePlan& dense = plan.dense[plan.n_dense - 1];
    loss_row(plan, tensors, shared + plan.logits + warp * plan.logits_pitch, dense.outputs, row - rank + warp,
             labels[warp], count, row < plan.batch && warp == rank, shared + dense.dy + warp, B::kImages);
  }
  __syncthreads();
  dense_backward<B>(tensors, rank, row);
  conv_backward<B>(tensors, row);
}

}  // namespace gpunn::cuda_tiled
