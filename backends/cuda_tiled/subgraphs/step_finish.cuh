// What the general kernels do with a layer's sums: batch norm, activations, means of windows, dropout, and the way back.
//
// Dropout leaves a mark in what it makes: -0 is an element that was dropped, and nothing else is. So the way back draws
// no numbers.
//
// Batch norm needs sums over all images, which are in other blocks: each block writes its own to the workspace, waits
// for all blocks of the kernel, and adds them up itself, in order. All blocks must be resident (step_kernels.cu sees to
// it).
#pragma once

#include <gpunn/random.h>

#include "step_batch.cuh"
#include "step_loss.cuh"
#include "step_pool.cuh"
#include "step_shared.cuh"
#include "step_sync.cuh"

namespace gpunn::cuda_tiled {

__device__ __forceinline__ float activate(StepActivation activation, float slope, float x) {
  switch (activation) {
    case StepActivation::relu:
      return x < 0.0F ? 0.0F : x;
    case StepActivation::leaky_relu:
      return x > 0.0F ? x : slope * x;
    case StepActivation::sigmoid:
      return 1.0F / (1.0F + expf(-x));
    case StepActivation::tanh:
      return tanhf(x);
    case StepActivation::gelu:
      return x * (0.5F * (1.0F + erff(x * 0.70710678118654752F)));
    case StepActivation::gelu_tanh:
      return x * (0.5F * (1.0F + tanhf(0.79788456080286536F * (x + 0.044715F * x * x * x))));
    case StepActivation::silu:
      return x / (1.0F + expf(-x));
    default:
      return x;
  }
}

// By what f made, of those whose result says it.
__device__ __forceinline__ float gradient_by_result(StepActivation activation, float slope, float y) {
  switch (activation) {
    case StepActivation::relu:
      return y > 0.0F ? 1.0F : 0.0F;
    case StepActivation::leaky_relu:
      return y > 0.0F ? 1.0F : slope;
    case StepActivation::sigmoid:
      return y * (1.0F - y);
    case StepActivation::tanh:
      return 1.0F - y * y;
    default:
      return 1.0F;
  }
}

__device__ __forceinline__ float activation_gradient(StepActivation activation, float slope, float x) {
  if (activation == StepActivation::gelu) {
    return 0.5F * (1.0F + erff(x * 0.70710678118654752F)) + x * 0.39894228040143268F * expf(-0.5F * x * x);
  }
  if (activation == StepActivation::gelu_tanh) {
    const float t = tanhf(0.79788456080286536F * (x + 0.044715F * x * x * x));
    return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * 0.79788456080286536F * (1.0F + 3.0F * 0.044715F * x * x);
  }
  if (activation == StepActivation::silu) {
    const float s = 1.0F / (1.0F + expf(-x));
    return s * (1.0F + x * (1.0F - s));
  }
  if (activation == StepActivation::leaky_relu) return x > 0.0F ? 1.0F : slope;
  return gradient_by_result(activation, slope, activate(activation, slope, x));
}

// Element `i` of a row of the batch.
__device__ __forceinline__ float drop(const StepPlan& plan, const FinishPlan& finish, int64_t counter, int row, int i,
                                      float value) {
  const StepDropout& dropout = finish.finish.dropout;
  if (dropout.threshold == 0) return value;
  const int64_t n = int64_t{plan.batch} * finish.row_size;
  const int64_t at = int64_t{row} * finish.row_size + i;
  const gpunn_random_words words =
      gpunn_philox(dropout.seed, dropout.stream, gpunn_random_block(counter, n) + static_cast<uint64_t>(at / 4));
  const auto word = static_cast<int>(at % 4);
  const uint32_t drawn = word == 0 ? words.word[0] : word == 1 ? words.word[1] : word == 2 ? words.word[2] : words.word[3];
  return drawn >> 8 < dropout.threshold ? -0.0F : dropout.factor * value + 0.0F;
}

// The gradient in front of dropout of one behind it, by what dropout made; `y` becomes what it was made of.
__device__ __forceinline__ float undrop(const StepDropout& dropout, float d, float& y) {
  if (dropout.threshold == 0) return d;
  if (__float_as_uint(y) == 0x80000000U) return 0.0F;
  y /= dropout.factor;
  return dropout.factor * d;
}

// By one thread of each block, when the block has written what others read: waits until all have.
__device__ __forceinline__ void meet_blocks(const StepTensors& tensors) {
#if __CUDA_ARCH__ >= 700
  auto* met = reinterpret_cast<unsigned long long*>(&tensors.noted->met);
  __threadfence();
  // The counter begins at -1.
  const unsigned long long before = atomicAdd(met, 1ULL) + 1ULL;
  const unsigned long long blocks = gridDim.x;
  const unsigned long long all = (before / blocks + 1ULL) * blocks;
  unsigned long long now = 0;
  do {
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(met) : "memory");
  } while (now + 1ULL < all);
  __threadfence();
#endif
}

// Numbers by channel of a batch norm in shared memory.
struct NormTable {
  float* at;
  int channels;

  __device__ __forceinline__ float& mean(int c) const { return at[c]; }
  __device__ __forceinline__ float& rstd(int c) const { return at[channels + c]; }
  __device__ __forceinline__ float& gamma(int c) const { return at[2 * channels + c]; }
  __device__ __forceinline__ float& beta(int c) const { return at[3 * channels + c]; }
  // Means over the batch of the gradient, and of it times what was normalised.
  __device__ __forceinline__ float& mean_d(int c) const { return at[4 * channels + c]; }
  __device__ __forceinline__ float& mean_dx(int c) const { return at[5 * channels + c]; }
  // Sums of a part of a channel.
  __device__ __forceinline__ float2& part(int c, int i) const {
    return reinterpret_cast<float2*>(at + kNormNumbers * channels)[c * kNormParts + i];
  }
  __device__ __forceinline__ float standard(int c, float x) const { return (x - mean(c)) * rstd(c); }
  __device__ __forceinline__ float normal(int c, float x) const { return standard(c, x) * gamma(c) + beta(c); }
};

// Rows of the batch that batch norm counts.
__device__ __forceinline__ int counted_rows(const StepPlan& plan, const StepBatch& batch) {
  return plan.counted != 0 ? min(max(batch.count, 0), plan.batch) : plan.batch;
}

// Of a channel: by a warp, whose lanes have sums over rows of (x - reference) and its square over `n` elements in all.
__device__ __forceinline__ void set_statistics(const StepPlan& plan, const GeneralTensors& tensors,
                                               const FinishPlan& finish, const NormTable& table, int slot, int channel,
                                               float mean, float squares, float n, bool writes) {
  if (threadIdx.x % 32 != 0) return;
  const StepNorm& norm = finish.finish.norm;
  const float variance = n > 0.0F ? squares / n : 0.0F;
  table.mean(slot) = n > 0.0F ? mean : 0.0F;
  table.rstd(slot) = n > 0.0F ? 1.0F / sqrtf(variance + norm.epsilon) : 0.0F;
  table.gamma(slot) = n > 0.0F ? __ldcg(tensors.parameters + norm.gamma + channel) : 0.0F;
  table.beta(slot) = n > 0.0F ? __ldcg(tensors.parameters + norm.beta + channel) : 0.0F;
  if (!writes || !(n > 0.0F)) return;
  float* running_mean = tensors.running[finish.norm_index][0] + channel;
  float* running_variance = tensors.running[finish.norm_index][1] + channel;
  const float unbiased = n > 1.0F ? squares / (n - 1.0F) : variance;
  *running_mean = (1.0F - norm.momentum) * *running_mean + norm.momentum * mean;
  *running_variance = (1.0F - norm.momentum) * *running_variance + norm.momentum * unbiased;
}

__device__ __forceinline__ NormTable norm_table(const FinishPlan& finish, int channels) {
  return {shared_floats() + finish.statistics, channels};
}

// Two sums over each channel's elements of the block's image: value(filter, i) gives the terms. Leaves them as parts, of
// which there are as many as is said.
template <class B, class Value>
__device__ __forceinline__ int sum_planes(const FinishPlan& finish, const NormTable& table, Value value) {
  constexpr int kWarps = B::kThreads / 32;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int filters = finish.channels;
  const int parts = max(1, min(kNormParts, kWarps / filters));
  for (int item = warp; item < filters * parts; item += kWarps) {
    const int filter = item / parts;
    const int part = item - filter * parts;
    float2 sum = make_float2(0.0F, 0.0F);
#pragma unroll 4
    for (int i = part * 32 + lane; i < finish.size; i += parts * 32) {
      const float2 term = value(filter, i);
      sum.x += term.x;
      sum.y += term.y;
    }
    sum.x = warp_sum(sum.x);
    sum.y = warp_sum(sum.y);
    if (lane == 0) table.part(filter, part) = sum;
  }
  return parts;
}

__device__ __forceinline__ float2 sum_parts(const NormTable& table, int channel, int parts) {
  float2 sum = table.part(channel, 0);
  for (int part = 1; part < parts; ++part) {
    sum.x += table.part(channel, part).x;
    sum.y += table.part(channel, part).y;
  }
  return sum;
}

// The sums of row_pass() with bias, to be kept.
template <class B>
__device__ __forceinline__ void keep_sums(const ConvPlan& conv, const FinishPlan& finish) {
  float* shared = shared_floats();
  const int a_filter = conv.forward.out_rows * conv.forward.pitch;
  const int a_split = conv.filters * a_filter;
  for (int i = static_cast<int>(threadIdx.x); i < conv.filters * finish.size; i += B::kThreads) {
    const int filter = divide(i, finish.by_size);
    const int in_plane = i - filter * finish.size;
    const int row = divide(in_plane, finish.by_out_row);
    const int column = in_plane - row * finish.out_width;
    const float* sum = shared + conv.forward.sums + filter * a_filter + row * conv.forward.pitch + column;
    float value = 0.0F;
    for (int split = 0; split < conv.forward.splits; ++split) value += sum[split * a_split];
    shared[finish.u + i] = value + shared[conv.bias + filter];
  }
}

// Mean and deviation of each channel over all images. `meet` meets the threads of B.
template <class B, class Meet>
__device__ __forceinline__ void conv_statistics(const GeneralTensors& tensors, const StepBatch& batch,
                                                const FinishPlan& finish, int row, Meet meet) {
  constexpr int kWarps = B::kThreads / 32;
  const StepPlan& plan = shared_plan();
  const NormTable table = norm_table(finish, finish.channels);
  const float* u = shared_floats() + finish.u;
  const int parts = sum_planes<B>(finish, table, [&](int filter, int i) {
    const float off = u[filter * finish.size + i] - u[filter * finish.size];
    return make_float2(off, off * off);
  });
  meet();
  const int rows = pass_blocks(plan);
  auto* exchange = reinterpret_cast<float2*>(tensors.workspace + finish.exchange);
  const auto size = static_cast<float>(finish.size);
  for (int c = static_cast<int>(threadIdx.x); c < finish.channels; c += B::kThreads) {
    const float2 sum = sum_parts(table, c, parts);
    const float off = sum.x / size;
    exchange[c * rows + row] = make_float2(u[c * finish.size] + off, fmaxf(sum.y - sum.x * off, 0.0F));
  }
  meet();
  if (threadIdx.x == 0) meet_blocks(tensors);
  meet();
  const int counted = counted_rows(plan, batch);
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int c = static_cast<int>(threadIdx.x / 32); c < finish.channels; c += kWarps) {
    const float2* of = exchange + c * rows;
    const float reference = __ldcg(of).x;
    float off = 0.0F;
    float off_squares = 0.0F;
    float within = 0.0F;
#pragma unroll 4
    for (int r = lane; r < counted; r += 32) {
      const float2 image = __ldcg(of + r);
      const float d = image.x - reference;
      off += d;
      off_squares = fmaf(d, d, off_squares);
      within += image.y;
    }
    off = warp_sum(off);
    off_squares = warp_sum(off_squares);
    within = warp_sum(within);
    const auto n = static_cast<float>(counted);
    const float mean = off / fmaxf(n, 1.0F);
    const float between = fmaxf(off_squares - off * mean, 0.0F);
    set_statistics(plan, tensors, finish, table, c, c, reference + mean, within + size * between, n * size, row == 0);
  }
  meet();
}

// From an image's sums to what the next layer reads, to put(filter, row, column, i, value). `meet` meets the threads of B.
template <class B, class Put, class Meet>
__device__ __forceinline__ void finish_conv_general(const GeneralTensors& tensors, const StepBatch& batch, int layer,
                                                    int row, Put put, Meet meet) {
  const StepPlan& plan = shared_plan();
  const ConvPlan& conv = plan.conv[layer];
  const FinishPlan& finish = plan.conv_finish[layer];
  const StepActivation activation = finish.finish.activation;
  const float slope = finish.finish.slope;
  if (finish.kept == 0) {
    finish_conv<B>(conv, [&](int filter, int r, int c, int i, float value) {
      if (conv.relu == 0) value = activate(activation, slope, value);
      put(filter, r, c, i, drop(plan, finish, batch.counter, row, i, value));
    });
    return;
  }
  keep_sums<B>(conv, finish);
  meet();
  const bool norm = finish.finish.norm.there != 0;
  if (norm) conv_statistics<B>(tensors, batch, finish, row, meet);
  const NormTable table = norm_table(finish, finish.channels);
  const float* u = shared_floats() + finish.u;
  uint8_t* chosen = shared_bytes() + conv.chosen;
  each_pooled<B>(conv, [&](int filter, int, int r, int c) {
    const float* window = u + filter * finish.size + r * conv.stride_rows * finish.out_width + c * conv.stride_columns;
    const int i = filter * conv.pooled_height * conv.pooled_width + r * conv.pooled_width + c;
    float most = 0.0F;
    float sum = 0.0F;
    int which = 0;
    int at = 0;
    for (int y = 0; y < conv.window_rows; ++y) {
      for (int x = 0; x < conv.window_columns; ++x) {
        const float raw = window[y * finish.out_width + x];
        const float value = activate(activation, slope, norm ? table.normal(filter, raw) : raw);
        sum += value;
        if (at == 0 || (!(value <= most) && !isnan(most))) {
          most = value;
          which = at;
        }
        ++at;
      }
    }
    chosen[i] = static_cast<uint8_t>(which);
    put(filter, r, c, i,
        drop(plan, finish, batch.counter, row, i, finish.mean != 0 ? sum * finish.mean_share : most));
  });
}

// As unpool(), of all that the general kernels know: `y` says what the layer made, by (filter, row, column, i).
template <class B, class Get, class Result>
__device__ __forceinline__ void unpool_general(int layer, int terms, int apart, Get get, Result result) {
  const StepPlan& plan = shared_plan();
  const ConvPlan& conv = plan.conv[layer];
  const FinishPlan& finish = plan.conv_finish[layer];
  float* shared = shared_floats();
  const StepActivation activation = finish.finish.activation;
  const float slope = finish.finish.slope;
  const bool norm = finish.finish.norm.there != 0;
  const NormTable table = norm_table(finish, finish.channels);
  const float* u = shared + finish.u;
  float* dy = shared + conv.dy + conv.dy_left;
  const uint8_t* chosen = shared_bytes() + conv.chosen;
  float2* windows = reinterpret_cast<float2*>(shared + conv.windows);
  each_pooled<B>(conv, [&](int filter, int place, int row, int column) {
    const int i = filter * conv.pooled_height * conv.pooled_width + place;
    const float* from = shared + get(filter, row, column, i);
    float d = 0.0F;
#pragma unroll 8
    for (int term = 0; term < terms; ++term) d += from[term * apart];
    float y = result(filter, row, column, i);
    d = undrop(finish.finish.dropout, d, y);
    const int which = chosen[i];
    float* plane = dy + filter * conv.dy_plane;
    if (finish.kept == 0) {
      if (which == 255) {
        if (conv.sparse != 0) windows[i] = make_float2(0.0F, 0.0F);
        return;
      }
      if (conv.relu == 0) d *= gradient_by_result(activation, slope, y);
      const int r = divide(which, conv.by_window);
      const int line = row * conv.stride_rows + r;
      const int at = column * conv.stride_columns + which - r * conv.window_columns;
      plane[line * conv.dy_pitch + at] = d;
      if (conv.sparse != 0) windows[i] = make_float2(__int_as_float(line * conv.x_pitch + at), d);
      return;
    }
    if (finish.mean != 0) d *= finish.mean_share;
    int at = 0;
    for (int r = 0; r < conv.window_rows; ++r) {
      for (int c = 0; c < conv.window_columns; ++c, ++at) {
        if (finish.mean == 0 && at != which) continue;
        const int line = row * conv.stride_rows + r;
        const int in_line = column * conv.stride_columns + c;
        const float raw = u[filter * finish.size + line * finish.out_width + in_line];
        plane[line * conv.dy_pitch + in_line] =
            d * activation_gradient(activation, slope, norm ? table.normal(filter, raw) : raw);
      }
    }
  });
}

// The gradient in front of batch norm, in place of the one behind it. By all threads.
template <class B>
__device__ __forceinline__ void conv_norm_backward(const GeneralTensors& tensors, const StepBatch& batch, int layer,
                                                   int row) {
  constexpr int kWarps = B::kThreads / 32;
  const StepPlan& plan = shared_plan();
  const ConvPlan& conv = plan.conv[layer];
  const FinishPlan& finish = plan.conv_finish[layer];
  const NormTable table = norm_table(finish, finish.channels);
  const float* u = shared_floats() + finish.u;
  float* dy = shared_floats() + conv.dy + conv.dy_left;
  const auto place = [&](int filter, int i) {
    const int line = divide(i, finish.by_out_row);
    return filter * conv.dy_plane + line * conv.dy_pitch + i - line * finish.out_width;
  };
  const int parts = sum_planes<B>(finish, table, [&](int filter, int i) {
    const float d = dy[place(filter, i)];
    return make_float2(d, d * table.standard(filter, u[filter * finish.size + i]));
  });
  __syncthreads();
  const int rows = pass_blocks(plan);
  auto* exchange = reinterpret_cast<float2*>(tensors.workspace + finish.exchange) + rows * finish.channels;
  for (int c = static_cast<int>(threadIdx.x); c < finish.channels; c += B::kThreads) {
    exchange[c * rows + row] = sum_parts(table, c, parts);
  }
  __syncthreads();
  if (threadIdx.x == 0) meet_blocks(tensors);
  __syncthreads();
  const int counted = counted_rows(plan, batch);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const float n = fmaxf(static_cast<float>(counted) * static_cast<float>(finish.size), 1.0F);
  for (int c = static_cast<int>(threadIdx.x / 32); c < finish.channels; c += kWarps) {
    float2 sum = make_float2(0.0F, 0.0F);
#pragma unroll 4
    for (int r = lane; r < counted; r += 32) {
      const float2 image = __ldcg(exchange + c * rows + r);
      sum.x += image.x;
      sum.y += image.y;
    }
    sum.x = warp_sum(sum.x);
    sum.y = warp_sum(sum.y);
    if (lane == 0) {
      table.mean_d(c) = sum.x / n;
      table.mean_dx(c) = sum.y / n;
      if (row == 0) {
        float* gradients = tensors.workspace + plan.norm_gradients + finish.first_norm;
        gradients[c] = sum.y;
        gradients[finish.channels + c] = sum.x;
      }
    }
  }
  __syncthreads();
  const bool counts = row < counted;
  for (int i = static_cast<int>(threadIdx.x); i < conv.filters * finish.size; i += B::kThreads) {
    const int filter = divide(i, finish.by_size);
    float& d = dy[place(filter, i - filter * finish.size)];
    const float x = table.standard(filter, u[i]);
    d = counts ? table.gamma(filter) * table.rstd(filter) * (d - table.mean_d(filter) - x * table.mean_dx(filter))
               : 0.0F;
  }
  __syncthreads();
}

// The sums of a dense layer's outputs [from, from + rows) over all images of the batch, for batch norm; `u` has the
// cluster's own. By all threads.
template <class B>
__device__ __forceinline__ void dense_statistics(const GeneralTensors& tensors, const StepBatch& batch, int layer,
                                                 int rows, int from, int rank, int first_row) {
  constexpr int kWarps = B::kThreads / 32;
  const StepPlan& plan = shared_plan();
  const DensePlan& dense = plan.dense[layer];
  const FinishPlan& finish = plan.dense_finish[layer];
  const float* u = shared_floats() + finish.u;
  const int pitch = pass_blocks(plan);
  float* exchange = tensors.workspace + finish.exchange;
  for (int i = static_cast<int>(threadIdx.x); i < rows * B::kImages; i += B::kThreads) {
    const int image = i % B::kImages;
    if (dense.sliced == 0 && image != rank) continue;
    exchange[(from + i / B::kImages) * pitch + first_row + image] = u[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) meet_blocks(tensors);
  __syncthreads();
  const NormTable table = norm_table(finish, dense.slice);
  const int counted = counted_rows(plan, batch);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const bool writes = first_row == 0 && (dense.sliced != 0 || rank == 0);
  for (int slot = static_cast<int>(threadIdx.x / 32); slot < rows; slot += kWarps) {
    const float* of = exchange + (from + slot) * pitch;
    const float reference = __ldcg(of);
    float off = 0.0F;
    float squares = 0.0F;
#pragma unroll 4
    for (int r = lane; r < counted; r += 32) {
      const float d = __ldcg(of + r) - reference;
      off += d;
      squares = fmaf(d, d, squares);
    }
    off = warp_sum(off);
    squares = warp_sum(squares);
    const auto n = static_cast<float>(counted);
    const float mean = off / fmaxf(n, 1.0F);
    set_statistics(plan, tensors, finish, table, slot, from + slot, reference + mean, fmaxf(squares - off * mean, 0.0F),
                   n, writes);
  }
  __syncthreads();
}

// In front of a dense layer's batch norm, of the gradient behind it in dense.dy; to put(slot, image, value). By all
// threads.
template <class B, class Put>
__device__ __forceinline__ void dense_norm_backward(const GeneralTensors& tensors, const StepBatch& batch, int layer,
                                                    int rows, int from, int rank, int first_row, Put put) {
  constexpr int kWarps = B::kThreads / 32;
  const StepPlan& plan = shared_plan();
  const DensePlan& dense = plan.dense[layer];
  const FinishPlan& finish = plan.dense_finish[layer];
  const float* u = shared_floats() + finish.u;
  const float* dy = shared_floats() + dense.dy;
  const int pitch = pass_blocks(plan);
  const float* sums = tensors.workspace + finish.exchange;
  float* exchange = tensors.workspace + finish.exchange + int64_t{pitch} * finish.channels;
  for (int i = static_cast<int>(threadIdx.x); i < rows * B::kImages; i += B::kThreads) {
    const int image = i % B::kImages;
    if (dense.sliced == 0 && image != rank) continue;
    exchange[(from + i / B::kImages) * pitch + first_row + image] = dy[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) meet_blocks(tensors);
  __syncthreads();
  const NormTable table = norm_table(finish, dense.slice);
  const int counted = counted_rows(plan, batch);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const bool writes = first_row == 0 && (dense.sliced != 0 || rank == 0);
  for (int slot = static_cast<int>(threadIdx.x / 32); slot < rows; slot += kWarps) {
    float sum = 0.0F;
    float product = 0.0F;
#pragma unroll 4
    for (int r = lane; r < counted; r += 32) {
      const float d = __ldcg(exchange + (from + slot) * pitch + r);
      sum += d;
      product = fmaf(d, table.standard(slot, __ldcg(sums + (from + slot) * pitch + r)), product);
    }
    sum = warp_sum(sum);
    product = warp_sum(product);
    if (lane == 0) {
      const float n = fmaxf(static_cast<float>(counted), 1.0F);
      table.mean_d(slot) = sum / n;
      table.mean_dx(slot) = product / n;
      if (writes) {
        float* gradients = tensors.workspace + plan.norm_gradients + finish.first_norm + from + slot;
        gradients[0] = product;
        gradients[finish.channels] = sum;
      }
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < rows * B::kImages; i += B::kThreads) {
    const int slot = i / B::kImages;
    const int image = i % B::kImages;
    const float value = table.gamma(slot) * table.rstd(slot) *
                        (dy[i] - table.mean_d(slot) - table.standard(slot, u[i]) * table.mean_dx(slot));
    put(slot, image, first_row + image < counted ? value : 0.0F);
  }
}

}  // namespace gpunn::cuda_tiled
