// Kernel 2 of a step: weight gradients, the optimizer, and the counters.
//
// Blocks are of three kinds. A tile of 16 x 32 weights of a dense layer: dw = dy^T x over the batch, each of 8 warps a
// share of the rows, their sums added in order. 32 columns of the convolutions' sums an image, added over the images.
// One block for loss, metrics and counters, one that draws the samples of the step to come. Whoever has a gradient
// updates its parameter at once: gradients are never written. Weights and optimizer state are fetched while the kernel
// before still runs.
#pragma once

#include "dependent_launch.cuh"
#include "step_batch.cuh"
#include "step_plan.hpp"
#include "step_sync.cuh"

namespace gpunn::cuda_tiled {

inline constexpr int kUpdateBatch = 128;  // rows of the batch at once
inline constexpr int kUpdateWarps = kUpdateThreads / 32;

// A parameter and what the optimizer keeps for it.
struct Parameter {
  int64_t at = -1;
  float w = 0.0F;
  float state1 = 0.0F;
  float state2 = 0.0F;
};

__device__ __forceinline__ Parameter load_parameter(const StepTensors& tensors, int64_t at) {
  Parameter parameter{.at = at};
  if (at < 0) return parameter;
  parameter.w = tensors.parameters[at];
  if (tensors.state1 != nullptr) parameter.state1 = tensors.state1[at];
  if (tensors.state2 != nullptr) parameter.state2 = tensors.state2[at];
  return parameter;
}

// SGD_UPDATE and ADAM_UPDATE of one parameter.
__device__ __forceinline__ void update(const StepPlan& plan, const StepTensors& tensors, const StepHead& head,
                                       const Parameter& parameter, float g) {
  const int64_t at = parameter.at;
  if (at < 0) return;
  if (plan.optimizer == StepOptimizer::sgd) {
    const float decay = at < plan.sgd.decayed ? plan.sgd.weight_decay : 0.0F;
    const float gradient = g + decay * parameter.w;
    float step = gradient;
    if (tensors.state1 != nullptr) {
      const float speed = plan.sgd.momentum * parameter.state1 + gradient;
      tensors.state1[at] = speed;
      step = plan.sgd.nesterov != 0 ? gradient + plan.sgd.momentum * speed : speed;
    }
    tensors.parameters[at] = parameter.w - head.rate * step;
    return;
  }
  const gpunn_adam_attrs& adam = plan.adam;
  const float decay = at < adam.decayed ? adam.weight_decay : 0.0F;
  const bool decoupled = adam.decoupled != 0;
  const float gradient = decoupled ? g : g + decay * parameter.w;
  const float keep = decoupled ? 1.0F - head.rate * decay : 1.0F;
  const float first = adam.beta1 * parameter.state1 + (1.0F - adam.beta1) * gradient;
  const float second = adam.beta2 * parameter.state2 + (1.0F - adam.beta2) * (gradient * gradient);
  tensors.state1[at] = first;
  tensors.state2[at] = second;
  tensors.parameters[at] =
      keep * parameter.w - head.rate * (first * head.correction1) / (sqrtf(second * head.correction2) + adam.epsilon);
}

struct UpdateShared {
  float x[kUpdateBatch][kUpdateColumns];
  float dy[kUpdateBatch][kUpdateRows];
  float bias[kUpdateThreads];
  float sums[kUpdateWarps][kUpdateRows * kUpdateColumns];
};

__device__ __forceinline__ void update_dense(const StepPlan& plan, const StepTensors& tensors, int block,
                                             UpdateShared& shared) {
  int layer = 0;
  while (layer + 1 < plan.n_dense && block >= plan.dense[layer + 1].first_tile) ++layer;
  const DensePlan& dense = plan.dense[layer];
  const int tile = block - dense.first_tile;
  const int output0 = tile / dense.tile_columns * kUpdateRows;
  const int input0 = tile % dense.tile_columns * kUpdateColumns;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;

  // Two weights a thread, and a bias for 16 threads of the tiles of the first column.
  Parameter weight[2];
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const int e = thread + j * kUpdateThreads;
    const int output = output0 + e / kUpdateColumns;
    const int input = input0 + e % kUpdateColumns;
    const bool inside = output < dense.outputs && input < dense.inputs;
    weight[j] = load_parameter(tensors, inside ? dense.weight_at + int64_t{output} * dense.inputs + input : -1);
  }
  const bool has_bias = input0 == 0 && thread < kUpdateRows && output0 + thread < dense.outputs;
  const Parameter bias = load_parameter(tensors, has_bias ? dense.bias_at + output0 + thread : -1);
  wait_for_kernel_before();
  let_next_kernel_start();
  const StepHead head = *reinterpret_cast<const StepHead*>(tensors.workspace + plan.head);

  const float* x_rows = tensors.workspace + dense.x_rows;
  const float* dy_rows = tensors.workspace + dense.dy_rows;
  const int from_output = lane / 8 * 4;
  const int from_input = lane % 8 * 4;
  float sum[4][4] = {};
  float bias_sum = 0.0F;
  for (int first = 0; first < plan.batch; first += kUpdateBatch) {
    if (first > 0) __syncthreads();
    for (int i = thread; i < kUpdateBatch * kUpdateColumns / 4; i += kUpdateThreads) {
      const int r = i / (kUpdateColumns / 4);
      const int c = i % (kUpdateColumns / 4) * 4;
      const bool there = first + r < plan.batch && input0 + c < dense.x_pitch;
      copy_async<16>(&shared.x[r][c], x_rows + (there ? int64_t{first + r} * dense.x_pitch + input0 + c : 0), there);
    }
    for (int i = thread; i < kUpdateBatch * kUpdateRows / 4; i += kUpdateThreads) {
      const int r = i / (kUpdateRows / 4);
      const int c = i % (kUpdateRows / 4) * 4;
      const bool there = first + r < plan.batch && output0 + c < dense.dy_pitch;
      copy_async<16>(&shared.dy[r][c], dy_rows + (there ? int64_t{first + r} * dense.dy_pitch + output0 + c : 0),
                     there);
    }
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < kUpdateBatch / kUpdateWarps; ++i) {
      const int r = warp * (kUpdateBatch / kUpdateWarps) + i;
      const float4 a = *reinterpret_cast<const float4*>(&shared.dy[r][from_output]);
      const float4 b = *reinterpret_cast<const float4*>(&shared.x[r][from_input]);
      const float d[4] = {a.x, a.y, a.z, a.w};
      const float x[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int o = 0; o < 4; ++o) {
#pragma unroll
        for (int k = 0; k < 4; ++k) sum[o][k] = fmaf(d[o], x[k], sum[o][k]);
      }
    }
    if (input0 == 0) {
      constexpr int kRows = kUpdateBatch / (kUpdateThreads / kUpdateRows);
#pragma unroll
      for (int i = 0; i < kRows; ++i) bias_sum += shared.dy[thread / kUpdateRows * kRows + i][thread % kUpdateRows];
    }
  }
#pragma unroll
  for (int o = 0; o < 4; ++o) {
    *reinterpret_cast<float4*>(&shared.sums[warp][(from_output + o) * kUpdateColumns + from_input]) =
        make_float4(sum[o][0], sum[o][1], sum[o][2], sum[o][3]);
  }
  shared.bias[thread] = bias_sum;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    float g = 0.0F;
#pragma unroll
    for (int w = 0; w < kUpdateWarps; ++w) g += shared.sums[w][thread + j * kUpdateThreads];
    update(plan, tensors, head, weight[j], g);
  }
  if (has_bias) {
    float g = 0.0F;
    for (int i = 0; i < kUpdateThreads / kUpdateRows; ++i) g += shared.bias[i * kUpdateRows + thread];
    update(plan, tensors, head, bias, g);
  }
}

__device__ __forceinline__ void update_convs(const StepPlan& plan, const StepTensors& tensors, int block,
                                             UpdateShared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int column = block * 32 + thread % 32;
  int64_t at = -1;
  for (int layer = 0; layer < plan.n_convs; ++layer) {
    const ConvPlan& conv = plan.conv[layer];
    if (column >= conv.weight_from && column < conv.bias_from) at = conv.weight_at + column - conv.weight_from;
    if (column >= conv.bias_from && column < conv.bias_from + conv.filters) at = conv.bias_at + column - conv.bias_from;
  }
  const Parameter parameter = load_parameter(tensors, warp == 0 ? at : -1);
  wait_for_kernel_before();
  let_next_kernel_start();
  const StepHead head = *reinterpret_cast<const StepHead*>(tensors.workspace + plan.head);
  const float* rows = tensors.workspace + plan.partial_rows;
  float sum = 0.0F;
  if (at >= 0) {
#pragma unroll 16
    for (int row = warp; row < plan.batch; row += kUpdateWarps) sum += rows[int64_t{row} * plan.partials + column];
  }
  shared.bias[thread] = sum;
  __syncthreads();
  if (warp != 0) return;
  float g = 0.0F;
  for (int w = 0; w < kUpdateWarps; ++w) g += shared.bias[w * 32 + thread];
  update(plan, tensors, head, parameter, g);
}

// Adds over the block, in an order that is always the same.
template <class T>
__device__ __forceinline__ T sum_of_block(T value, T* shared) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xFFFFFFFFU, value, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  T sum{};
  for (int w = 0; w < kUpdateWarps; ++w) sum += shared[w];
  return sum;
}

// MEAN_ROWS, METRICS_ACCUMULATE, TABLE_STORE and ADVANCE. No other block reads the counter.
__device__ __forceinline__ void finish_step(const StepPlan& plan, const StepTensors& tensors, UpdateShared& shared) {
  wait_for_kernel_before();
  let_next_kernel_start();
  const StepHead head = *reinterpret_cast<const StepHead*>(tensors.workspace + plan.head);
  const float* losses = tensors.workspace + plan.losses;
  const int* ranks = reinterpret_cast<const int*>(tensors.workspace + plan.ranks);
  double sum = 0.0;
  int first = 0;
  int top5 = 0;
  for (int row = static_cast<int>(threadIdx.x); row < head.count; row += kUpdateThreads) {
    sum += static_cast<double>(losses[row]);
    const int rank = ranks[row];
    first += rank == 0 ? 1 : 0;
    top5 += rank < 5 ? 1 : 0;
  }
  sum = sum_of_block(sum, reinterpret_cast<double*>(shared.bias));
  first = sum_of_block(first, reinterpret_cast<int*>(shared.bias));
  top5 = sum_of_block(top5, reinterpret_cast<int*>(shared.bias));
  if (threadIdx.x != 0) return;
  if (plan.metrics != 0) {
    tensors.totals[0] += sum;
    tensors.totals[1] += static_cast<double>(first);
    tensors.totals[2] += static_cast<double>(top5);
    tensors.totals[3] += static_cast<double>(head.count);
  }
  if (plan.history > 0) {
    const int64_t remainder = head.step % plan.history;
    tensors.history[remainder < 0 ? remainder + plan.history : remainder] =
        static_cast<float>(sum / static_cast<double>(head.count));
  }
  *tensors.step = static_cast<int64_t>(static_cast<uint64_t>(head.step) + static_cast<uint64_t>(plan.advance));
}

__global__ void __launch_bounds__(kUpdateThreads, 3) step_update(const StepTensors tensors) {
  __shared__ __align__(16) UpdateShared shared;
  __shared__ StepPlan plan;
  copy_plan(tensors.plan, reinterpret_cast<float4*>(&plan), kUpdateThreads);
  __syncthreads();
  const int block = static_cast<int>(blockIdx.x);
  if (block < plan.dense_blocks) {
    update_dense(plan, tensors, block, shared);
  } else if (block < plan.dense_blocks + plan.partial_blocks) {
    update_convs(plan, tensors, block - plan.dense_blocks, shared);
  } else if (block == plan.dense_blocks + plan.partial_blocks) {
    finish_step(plan, tensors, shared);
  } else {
    wait_for_kernel_before();
    let_next_kernel_start();
    const StepHead head = *reinterpret_cast<const StepHead*>(tensors.workspace + plan.head);
    const auto next = static_cast<int64_t>(static_cast<uint64_t>(head.step) + static_cast<uint64_t>(plan.advance));
    note_next_batch(plan, tensors, next, static_cast<int>(threadIdx.x), kUpdateThreads);
  }
}

}  // namespace gpunn::cuda_tiled
