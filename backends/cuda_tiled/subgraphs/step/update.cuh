// Kernel 2 of a step: weight gradients, the optimizer, and the counters.
//
// There are several kinds of blocks. The first computes a tile of 16 x 64 weights of a dense layer: dw = dy^T x over
// the batch. Each of 8 warps has a share of the rows, and their sums are added in order. The second adds over the
// images 64 columns, of the convolutions' sums an image or of a dense layer's dy, which gives its bias' gradient. One
// more block handles loss, metrics and counters, and one draws the samples of the step to come.
//
// The thread that has a gradient updates its parameter at once: gradients are never written. Weights and optimizer
// state are fetched while the kernel before still runs. The tiles of dense layers do not wait for its end either.
// Counters tell when their factors are there, first x, then dy. In networks with convolutions, these tiles finish while
// the first kernel still runs its backward convolutions.
//
// The instance of all parts supports more optimizers, bounds of gradients and averages (FlatOp). It writes the
// gradients if ops outside the step update the parameters, or if the norm of all gradients is needed: kernel 3
// continues from there.
//
// With several ranks the thread adds up its gradient over them first (ranks.cuh). Then all blocks of this kernel
// must be resident.
#pragma once

#include "dependent_launch.cuh"
#include "subgraphs/step/batch.cuh"
#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/optimizer.cuh"
#include "subgraphs/step/plan.hpp"
#include "subgraphs/step/shared.cuh"
#include "subgraphs/step/sync.cuh"
#include "subgraphs/step/tensors.hpp"

namespace gpunn::cuda_tiled {

inline constexpr int kUpdateBatch = 128;  // rows of the batch at once
inline constexpr int kUpdateWarps = kUpdateThreads / 32;
// Bounds the registers, so that a block fits beside one of the first kernel.
inline constexpr int kUpdateBound = 320;

union UpdateShared {
  struct {
    float x[kUpdateBatch][kUpdateColumns];
    float dy[kUpdateBatch][kUpdateRows];
  } factors;
  float sums[kUpdateWarps][kUpdateRows * kUpdateColumns];
  float bias[kUpdateThreads];
};

// Columns [from, from + COLUMNS) of kUpdateBatch rows, zeros where there is nothing.
template <int COLUMNS>
__device__ __forceinline__ void fetch_rows(float (*to)[COLUMNS], const float* rows, int n, int pitch, int from) {
  constexpr int kPieces = COLUMNS / 4;
#pragma unroll
  for (int j = 0; j < kUpdateBatch * kPieces / kUpdateThreads; ++j) {
    const int i = static_cast<int>(threadIdx.x) + j * kUpdateThreads;
    const int r = i / kPieces;
    const int c = i % kPieces * 4;
    const bool there = r < n && from + c < pitch;
    copy_async<16>(&to[r][c], rows + (there ? r * pitch + from + c : 0), there);
  }
}

template <unsigned PARTS>
__device__ __forceinline__ float update_dense(const StepPlan& plan, const UpdateTensors<PARTS>& tensors, int block,
                                              UpdateShared& shared) {
  constexpr int kParameters = kUpdateRows * kUpdateColumns / kUpdateThreads;  // of a thread
  int layer = 0;
  while (layer + 1 < plan.n_dense && block >= plan.dense[layer + 1].first_tile) ++layer;
  const DensePlan& dense = plan.dense[layer];
  const int tile = block - dense.first_tile;
  const int output0 = tile / dense.tile_columns * kUpdateRows;
  const int input0 = tile % dense.tile_columns * kUpdateColumns;
  const int inputs = dense.inputs;
  const auto weight_at = static_cast<int>(dense.weight_at);
  const int batch = plan.batch;
  const int x_pitch = dense.x_pitch;
  const int dy_pitch = dense.dy_pitch;
  const float* x_rows = tensors.workspace + dense.x_rows;
  const float* dy_rows = tensors.workspace + dense.dy_rows;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;

  static_assert(kUpdateThreads % kUpdateColumns == 0);
  constexpr int kApart = kUpdateThreads / kUpdateColumns;  // rows between two parameters of a thread
  const int output = output0 + thread / kUpdateColumns;
  const int input = input0 + thread % kUpdateColumns;
  const int outputs = input < inputs ? dense.outputs : 0;
  const int first_at = weight_at + output * inputs + input;
  const auto place = [&](int j) { return output + j * kApart < outputs ? first_at + j * kApart * inputs : -1; };
  LoadedParameter<PARTS> weight[kParameters];
#pragma unroll
  for (int j = 0; j < kParameters; ++j) {
    weight[j] = load_early<PARTS>(plan, tensors, place(j));
  }
  // The first kernel's blocks have all started, and go on with the convolutions when they have written what this block
  // reads. It waits for no other block of this kernel.
  uint32_t all = 0;
  if (thread == 0) {
    const uint32_t runs = run_of(tensors);
    all = runs * static_cast<uint32_t>(plan.pass_blocks) - 1;
    if constexpr (kAddsOverRanks<PARTS>) shared_run() = runs;
    wait_for_count(&tensors.noted->inputs, all);
  }
  __syncthreads();
  fetch_rows<kUpdateColumns>(shared.factors.x, x_rows, batch, x_pitch, input0);
  if (thread == 0) wait_for_count(&tensors.noted->written, all);
  __syncthreads();

  fetch_rates(plan, tensors);
  const int from_output = lane / 8 * 4;
  const int from_input = lane % 8 * 4;
  float sum[4][8] = {};
  for (int first = 0; first < batch; first += kUpdateBatch) {
    if (first > 0) {
      __syncthreads();
      fetch_rows<kUpdateColumns>(shared.factors.x, x_rows + int64_t{first} * x_pitch, batch - first, x_pitch, input0);
    }
    fetch_rows<kUpdateRows>(shared.factors.dy, dy_rows + int64_t{first} * dy_pitch, batch - first, dy_pitch, output0);
    wait_for_copies();
    __syncthreads();
#pragma unroll 2
    for (int i = 0; i < kUpdateBatch / kUpdateWarps; ++i) {
      const int r = warp * (kUpdateBatch / kUpdateWarps) + i;
      const float4 a = *reinterpret_cast<const float4*>(&shared.factors.dy[r][from_output]);
      const float4 b = *reinterpret_cast<const float4*>(&shared.factors.x[r][from_input]);
      const float4 c = *reinterpret_cast<const float4*>(&shared.factors.x[r][from_input + 32]);
      const float d[4] = {a.x, a.y, a.z, a.w};
      const float x[8] = {b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w};
#pragma unroll
      for (int o = 0; o < 4; ++o) {
#pragma unroll
        for (int k = 0; k < 8; ++k) sum[o][k] = fmaf(d[o], x[k], sum[o][k]);
      }
    }
  }
  __syncthreads();  // the factors have been read
#pragma unroll
  for (int o = 0; o < 4; ++o) {
    float* to = &shared.sums[warp][(from_output + o) * kUpdateColumns + from_input];
    *reinterpret_cast<float4*>(to) = make_float4(sum[o][0], sum[o][1], sum[o][2], sum[o][3]);
    *reinterpret_cast<float4*>(to + 32) = make_float4(sum[o][4], sum[o][5], sum[o][6], sum[o][7]);
  }
  __syncthreads();
  return finish_gradients<PARTS>(plan, tensors, shared_rates(), weight, place, [&](int j) {
    float g = 0.0F;
#pragma unroll
    for (int w = 0; w < kUpdateWarps; ++w) g += shared.sums[w][thread + j * kUpdateThreads];
    return g;
  });
}

// The parameter `at`, whose gradient is the sum of a column of `rows`, kUpdateSums of them a block.
template <unsigned PARTS>
__device__ __forceinline__ float update_column(const StepPlan& plan, const UpdateTensors<PARTS>& tensors,
                                               const float* rows, int pitch, int batch, int at, UpdateShared& shared) {
  constexpr int kGroups = kUpdateThreads / kUpdateSums;
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread / kUpdateSums;
  const LoadedParameter<PARTS> parameter[1] = {load_early<PARTS>(plan, tensors, group == 0 ? at : -1)};
  wait_for_kernel_before();
  fetch_rates(plan, tensors);
  if constexpr (kAddsOverRanks<PARTS>) {
    if (thread == 0) shared_run() = run_of(tensors);
  }
  float sum = 0.0F;
  if (at >= 0) {
#pragma unroll 32
    for (int row = group; row < batch; row += kGroups) sum += rows[row * pitch];
  }
  shared.bias[thread] = sum;
  wait_for_copies();
  __syncthreads();
  if (group != 0) return 0.0F;
  return finish_gradients<PARTS>(
      plan, tensors, shared_rates(), parameter, [&](int) { return group == 0 ? at : -1; },
      [&](int) {
        float g = 0.0F;
#pragma unroll
        for (int i = 0; i < kGroups; ++i) g += shared.bias[i * kUpdateSums + thread];
        return g;
      });
}

template <unsigned PARTS>
__device__ __forceinline__ float update_convs(const StepPlan& plan, const UpdateTensors<PARTS>& tensors, int block,
                                              UpdateShared& shared) {
  const int column = block * kUpdateSums + static_cast<int>(threadIdx.x) % kUpdateSums;
  int at = -1;
  for (int layer = 0; layer < plan.n_convs; ++layer) {
    const ConvPlan& conv = plan.conv[layer];
    if (column >= conv.weight_from && column < conv.bias_from)
      at = static_cast<int>(conv.weight_at) + column - conv.weight_from;
    if (column >= conv.bias_from && column < conv.bias_from + conv.filters && conv.bias_at >= 0)
      at = static_cast<int>(conv.bias_at) + column - conv.bias_from;
  }
  return update_column<PARTS>(plan, tensors, tensors.workspace + plan.partial_rows + column, plan.partials,
                              plan.partial_sums, at, shared);
}

template <unsigned PARTS>
__device__ __forceinline__ float update_biases(const StepPlan& plan, const UpdateTensors<PARTS>& tensors, int block,
                                               UpdateShared& shared) {
  int layer = 0;
  while (layer + 1 < plan.n_dense && block >= plan.dense[layer + 1].first_bias) ++layer;
  const DensePlan& dense = plan.dense[layer];
  const int column = (block - dense.first_bias) * kUpdateSums + static_cast<int>(threadIdx.x) % kUpdateSums;
  const int at = column < dense.outputs && dense.bias_at >= 0 ? static_cast<int>(dense.bias_at) + column : -1;
  return update_column<PARTS>(plan, tensors, tensors.workspace + dense.dy_rows + column, dense.dy_pitch, plan.batch, at,
                              shared);
}

// Gammas and betas of batch norms, whose gradients the first kernel has summed up; and the running statistics.
template <unsigned PARTS>
__device__ __forceinline__ float update_norms(const StepPlan& plan, const UpdateTensors<PARTS>& tensors, int block,
                                              UpdateShared& shared) {
  const int column = block * kUpdateSums + static_cast<int>(threadIdx.x) % kUpdateSums;
  int at = -1;
  float* running = nullptr;
  float momentum = 0.0F;
  const auto look = [&](const FinishPlan& finish) {
    const int c = column - finish.first_norm;
    const StepNorm& norm = finish.finish.norm;
    if (norm.there == 0 || c < 0 || c >= 2 * finish.channels) return;
    const bool second = c >= finish.channels;
    const int channel = second ? c - finish.channels : c;
    at = static_cast<int>((second ? norm.beta : norm.gamma) + channel);
    running = tensors.running[finish.norm_index][second ? 1 : 0] + channel;
    momentum = norm.momentum;
  };
  for (int i = 0; i < plan.n_convs; ++i) look(plan.conv_finish[i]);
  for (int i = 0; i < plan.n_dense; ++i) look(plan.dense_finish[i]);
  const float before = running != nullptr ? *running : 0.0F;
  const float* gradients = tensors.workspace + plan.norm_gradients + column;
  const float squares = update_column<PARTS>(plan, tensors, gradients, 0, 1, at, shared);
  const bool counts = plan.counted == 0 || shared_rates().count > 0;
  if (running != nullptr && counts && threadIdx.x < kUpdateSums) {
    *running = (1.0F - momentum) * before + momentum * __ldcg(gradients + plan.norms);
  }
  return squares;
}

// The samples of the step after the next. To draw a number takes longer than the rest of this kernel, so that is begun
// before the kernel before has ended: the counter advances only after that. A block that began too late finds it
// advanced, and draws again.
__device__ __forceinline__ void draw_batch(const StepPlan& plan, const StepTensors& tensors) {
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t early = step_after(plan, step_after(plan, *reinterpret_cast<volatile const long long*>(tensors.step)));
  const int64_t noted[2] = {*static_cast<volatile const int64_t*>(&noted_batch(plan, tensors.noted, 0).step),
                            *static_cast<volatile const int64_t*>(&noted_batch(plan, tensors.noted, 1).step)};
  int drawn = sample_index(plan, early, thread);
  __syncthreads();  // all have read what is noted
  wait_for_kernel_before();
  const auto* head = reinterpret_cast<const StepHead*>(tensors.workspace + plan.head);
  const int64_t next = step_after(plan, __ldcg(reinterpret_cast<const long long*>(&head->step)));
  const auto note = [&](int which, int64_t step) {
    NextBatch& batch = noted_batch(plan, tensors.noted, which);
    auto* index = reinterpret_cast<int32_t*>(&batch + 1);
    for (int row = thread; row < plan.batch; row += kUpdateThreads) {
      if (row != thread || step != early) drawn = sample_index(plan, step, row);
      index[row] = drawn;
    }
    if (thread == 0) batch.step = step;
  };
  const int kept = noted[0] == next ? 0 : 1;
  note(1 - kept, step_after(plan, next));
  if (noted[kept] != next) note(kept, next);
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
template <unsigned PARTS>
__device__ __forceinline__ void finish_step(const StepPlan& plan, const UpdateTensors<PARTS>& tensors,
                                            UpdateShared& shared) {
  wait_for_kernel_before();
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
    float loss[1] = {static_cast<float>(sum / static_cast<double>(head.count))};
    if constexpr (kAddsOverRanks<PARTS>) {
      loss[0] *= plan.loss_weight;
      const int at = static_cast<int>(plan.words) - 1;
      add_over_ranks(
          tensors.peers, run_of(tensors), [at](int) { return at; }, loss);
    }
    const int64_t remainder = head.step % plan.history;
    tensors.history[remainder < 0 ? remainder + plan.history : remainder] = loss[0];
  }
  if constexpr (kAddsOverRanks<PARTS>) {
    if (tensors.pass != nullptr) *tensors.pass += plan.pass_advance;
  }
  if constexpr ((PARTS & kNormPart) != 0) ++tensors.noted->runs;
  if constexpr (kUpdatesFlat<PARTS>) {
    const double mean = head.count > 0 ? sum / static_cast<double>(head.count) : 0.0;
    if (tensors.mean_loss != nullptr) *tensors.mean_loss = static_cast<float>(mean);
    if (plan.advances == 0) return;
  }
  *tensors.step = static_cast<int64_t>(static_cast<uint64_t>(head.step) + static_cast<uint64_t>(plan.advance));
}

template <unsigned PARTS>
__global__ void __launch_bounds__(kUpdateBound, 2) step_update(const __grid_constant__ UpdateTensors<PARTS> tensors) {
  constexpr bool kFlat = kUpdatesFlat<PARTS>;
  __shared__ __align__(16) UpdateShared shared;
  __shared__ __align__(16) char plan_memory[plan_bytes(kUpdatesGeneral<PARTS>)];
  const StepPlan& plan = *reinterpret_cast<const StepPlan*>(plan_memory);
  // What the next step's first kernel does before it waits is noted by now, or will be found out to be wrong.
  let_next_kernel_start();
  copy_plan<kUpdatesGeneral<PARTS>>(tensors.plan, reinterpret_cast<float4*>(plan_memory), kUpdateThreads);
  __syncthreads();
  const int block = static_cast<int>(blockIdx.x);
  const int partial = block - plan.dense_blocks;
  const int bias = partial - plan.partial_blocks;
  int rest = bias - plan.bias_blocks;
  float squares = 0.0F;
  if (partial < 0) {
    squares = update_dense<PARTS>(plan, tensors, block, shared);
  } else if (bias < 0) {
    squares = update_convs<PARTS>(plan, tensors, partial, shared);
  } else if (rest < 0) {
    squares = update_biases<PARTS>(plan, tensors, bias, shared);
  } else {
    if constexpr ((PARTS & kNormPart) != 0) {
      if (rest < plan.norm_blocks) squares = update_norms<PARTS>(plan, tensors, rest, shared);
      rest -= plan.norm_blocks;
    }
    if (rest == 0) finish_step<PARTS>(plan, tensors, shared);
    if (rest == 1) draw_batch(plan, tensors);
  }
  if constexpr (kFlat) {
    if (block < plan.update_blocks && plan.before_norm >= 0) {
      __syncthreads();
      squares = sum_of_block(squares, shared.bias);
      if (threadIdx.x == 0) tensors.workspace[plan.squares + block] = squares;
    }
  }
}

}  // namespace gpunn::cuda_tiled
