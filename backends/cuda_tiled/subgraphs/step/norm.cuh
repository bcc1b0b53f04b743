// Batch norm behind the convolutions of a fused training step, and its gradient.
//
// If max pooling follows, each window's largest element is picked while the blocks wait for the statistics. Norm and
// activation keep the order of the elements, or reverse it if gamma is negative. In the backward pass only the picked
// elements have a gradient, until the norm spreads it over the plane.
#pragma once

#include "subgraphs/step/activation.cuh"
#include "subgraphs/step/batch.cuh"
#include "subgraphs/step/exchange.cuh"
#include "subgraphs/step/pool.cuh"
#include "subgraphs/step/shared.cuh"
#include "subgraphs/step/sync.cuh"

namespace gpunn::cuda_tiled {

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
  __device__ __forceinline__ float standard(int c, float x) const { return (x - mean(c)) * rstd(c); }
  __device__ __forceinline__ float normal(int c, float x) const { return standard(c, x) * gamma(c) + beta(c); }
};

__device__ __forceinline__ NormTable norm_table(const FinishPlan& finish, int channels) {
  return {shared_floats() + finish.statistics, channels};
}

// Gamma and beta of a channel, a thread each: asked for early, since they take as long as all else.
template <class B>
struct Affine {
  static constexpr int kEach = 2;
  float gamma[kEach] = {};
  float beta[kEach] = {};

  __device__ __forceinline__ Affine(const StepTensors& tensors, const StepNorm& norm, int from, int channels) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int c = static_cast<int>(threadIdx.x) + i * B::kThreads;
      if (c >= channels) continue;
      gamma[i] = __ldcg(tensors.parameters + norm.gamma + from + c);
      beta[i] = __ldcg(tensors.parameters + norm.beta + from + c);
    }
  }
  // Where no row counts, batch norm makes zeros.
  __device__ __forceinline__ void store(const NormTable& table, int channels, bool any) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int c = static_cast<int>(threadIdx.x) + i * B::kThreads;
      if (c >= channels) continue;
      table.gamma(c) = gamma[i];
      table.beta(c) = any ? beta[i] : 0.0F;
    }
  }
};

// The results of an exchange for channels [from, from + channels), to put(channel, result).
template <class B, class Put>
__device__ __forceinline__ void wait_for_results(const NormExchange& exchange, uint32_t run, int from, int channels,
                                                 Put put) {
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += B::kThreads) {
    put(c, exchange.wait_for_result(from + c, run));
  }
}

// Calls use(channel, part, whether it is there) by groups of 2^lanes_log neighbouring threads, all of a warp at once.
template <class B, class Use>
__device__ __forceinline__ void each_part(const FinishPlan& finish, Use use) {
  const int items = finish.channels << finish.parts_log;
#pragma unroll 1
  for (int first = 0; first < items; first += B::kThreads >> finish.lanes_log) {
    const int item = first + (static_cast<int>(threadIdx.x) >> finish.lanes_log);
    const int part = item & ((1 << finish.parts_log) - 1);
    use(min(item >> finish.parts_log, finish.channels - 1), part, item < items);
  }
}

// Over the group's threads.
__device__ __forceinline__ float2 sum_of_lanes(const FinishPlan& finish, float2 sum) {
#pragma unroll 1
  for (int step = 1 << finish.lanes_log >> 1; step > 0; step /= 2) {
    sum.x += __shfl_xor_sync(0xFFFFFFFFU, sum.x, step);
    sum.y += __shfl_xor_sync(0xFFFFFFFFU, sum.y, step);
  }
  return sum;
}

// A part's rows of the output.
struct PartRows {
  int first;
  int count;

  __device__ __forceinline__ PartRows(const RowPass& pass, const FinishPlan& finish, int part)
      : first(min(part * finish.part_rows, pass.out_rows)), count(min(finish.part_rows, pass.out_rows - first)) {}
};

// The sums of row_pass() with bias, which are kept; tells their mean and the squares of what is off it.
template <class B>
__device__ __forceinline__ void tell_statistics(const StepTensors& tensors, const StepBatch& batch,
                                                const ConvPlan& conv, const FinishPlan& finish, int row) {
  float* shared = shared_floats();
  const int lanes = 1 << finish.lanes_log;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int splits = conv.forward.splits;
  const int pitch = conv.forward.pitch;
  const int width = finish.out_width;
  const int a_split = conv.filters * finish.plane;
  float2* saved = reinterpret_cast<float2*>(tensors.workspace + finish.saved + int64_t{row} * ((a_split + 3) / 4 * 4));
  const NormExchange exchange(tensors, finish, false);
  each_part<B>(finish, [&](int filter, int part, bool there) {
    const PartRows rows(conv.forward, finish, part);
    const int count = there ? rows.count * pitch / 2 : 0;
    const int first = (filter * finish.plane + rows.first * pitch) / 2;
    float2* sums = reinterpret_cast<float2*>(shared + conv.forward.sums) + first;
    const float bias = shared[conv.bias + filter];
    const auto sum_at = [&](int j) {
      float2 u = sums[j];
      for (int split = 1; split < splits; ++split) {
        const float2 more = sums[split * (a_split / 2) + j];
        u.x += more.x;
        u.y += more.y;
      }
      return make_float2(u.x + bias, u.y + bias);
    };
    // The first element is as good a reference as any. No other thread changes it.
    const float reference = __shfl_sync(0xFFFFFFFFU, lane == 0 && count > 0 ? sum_at(0).x : 0.0F, 0, lanes);
    float2 sum = make_float2(0.0F, 0.0F);
#pragma unroll 2
    for (int j = lane; j < count; j += lanes) {
      const float2 u = sum_at(j);
      sums[j] = u;
      __stcg(saved + first + j, u);
      const int column = 2 * j - divide(2 * j, finish.by_pitch) * pitch;
      const float off0 = column < width ? u.x - reference : 0.0F;
      const float off1 = column + 1 < width ? u.y - reference : 0.0F;
      sum.x += off0 + off1;
      sum.y = fmaf(off0, off0, fmaf(off1, off1, sum.y));
    }
    sum = sum_of_lanes(finish, sum);
    if (lane != 0 || !there) return;
    const auto n = static_cast<float>(max(rows.count * width, 1));
    const float off = sum.x / n;
    tell(exchange.source(filter, (row << finish.parts_log) + part),
         make_float2(reference + off, fmaxf(sum.y - sum.x * off, 0.0F)), batch.run);
  });
}

// What the blocks have told of a convolution's statistics: by the last warp, while the others go on. Channels are dealt
// to the blocks.
__device__ __forceinline__ void reduce_conv_statistics(const StepTensors& tensors, const StepBatch& batch, int row,
                                                       int layer) {
  const StepPlan& plan = shared_plan();
  const FinishPlan& finish = plan.conv_finish[layer];
  if (finish.finish.norm.there == 0 || row >= finish.channels) return;
  const int counted = counted_rows(plan, batch);
  const NormExchange exchange(tensors, finish, false);
  const int parts = 1 << finish.parts_log;
  const auto n = static_cast<float>(counted) * static_cast<float>(finish.size);
#pragma unroll 1
  for (int c = row; c < finish.channels; c += plan.pass_blocks) {
    reduce_statistics(plan, tensors, finish, exchange, batch.run, c, counted * parts, n, [&](int source) {
      const PartRows rows(plan.conv[layer].forward, finish, source & (parts - 1));
      return static_cast<float>(rows.count * finish.out_width);
    });
  }
}

template <class B>
__device__ __forceinline__ void wait_for_statistics(const NormExchange& exchange, const NormTable& table, uint32_t run,
                                                    int from, int channels) {
  wait_for_results<B>(exchange, run, from, channels, [&](int c, float2 result) {
    table.mean(c) = result.x;
    table.rstd(c) = result.y;
  });
}

// From an image's sums to what the next layer reads, to put(filter, row, column, i, value), by way of the elements that
// are picked: these are left in `pick`, in planes of x of the next layer unless the plan has room of their own.
// `meet` meets the threads of B.
template <class B, class Put, class Meet>
__device__ __forceinline__ void normed_conv(const StepTensors& tensors, const StepBatch& batch, int layer, int row,
                                            float* pick, int pick_plane, int pick_pitch, Put put, Meet meet) {
  const StepPlan& plan = shared_plan();
  const ConvPlan& conv = plan.conv[layer];
  const FinishPlan& finish = plan.conv_finish[layer];
  const NormTable table = norm_table(finish, finish.channels);
  const Affine<B> affine(tensors, finish.finish.norm, 0, finish.channels);
  tell_statistics<B>(tensors, batch, conv, finish, row);
  affine.store(table, finish.channels, counted_rows(plan, batch) > 0);
  meet();
  const float* values = shared_floats() + conv.forward.sums;
  uint8_t* chosen = shared_bytes() + conv.chosen;
  const int pitch = conv.forward.pitch;
  const int size = conv.pooled_height * conv.pooled_width;
  const int plane = finish.plane;
  const int stride_rows = conv.stride_rows * pitch;
  const int stride_columns = conv.stride_columns;
  const bool two_by_two = conv.window_rows == 2 && conv.window_columns == 2 && stride_columns % 2 == 0;
  const bool packed = finish.pick >= 0;
  float* saved = tensors.workspace + finish.saved_picks + int64_t{row} * ((finish.row_size + 3) / 4 * 4);
  each_pooled<B>(conv, [&](int filter, int place, int r, int c) {
    const float* window = values + filter * plane + r * stride_rows + c * stride_columns;
    // Of elements that the norm makes equal the first is taken.
    const float gamma = table.gamma(filter);
    const float sign = gamma > 0.0F ? 1.0F : gamma < 0.0F ? -1.0F : 0.0F;
    float most = 0.0F;
    float picked = 0.0F;
    int which = 0;
    const auto look = [&](int at, float value) {
      const float key = sign * value;
      if (at == 0 || (!(key <= most) && !isnan(most))) {
        most = key;
        picked = value;
        which = at;
      }
    };
    each_of_window(conv, two_by_two, window, pitch, look);
    const int i = filter * size + place;
    chosen[i] = static_cast<uint8_t>(which);
    pick[packed ? i : filter * pick_plane + r * pick_pitch + c] = picked;
    __stcg(saved + i, picked);
  });
  wait_for_statistics<B>(NormExchange(tensors, finish, false), table, batch.run, 0, finish.channels);
  meet();
  const bool relu = conv.relu != 0;
  const auto finish_all = [&](auto drop) {
    each_pooled<B>(conv, [&](int filter, int place, int r, int c) {
      const int i = filter * size + place;
      float y = table.normal(filter, pick[packed ? i : filter * pick_plane + r * pick_pitch + c]);
      if (relu && !(y > 0.0F)) {
        if (y < 0.0F) y = 0.0F;
        chosen[i] = 255;
      }
      put(filter, r, c, i, drop(i, y));
    });
  };
  if constexpr (B::kFinishes) {
    const Dropping drop(plan, finish, batch.counter, row);
    const StepActivation activation = finish.finish.activation;
    const float slope = finish.finish.slope;
    finish_all([&](int i, float y) { return drop(i, activate(activation, slope, y)); });
  } else {
    finish_all([](int, float y) { return y; });
  }
}

// As unpool(), of a convolution whose elements were picked, of the gradient behind its norm; tells its sums over each
// channel. `value` says what the layer made, by (filter, row, column, i).
template <class B, class Get, class Value>
__device__ __forceinline__ void normed_unpool(const StepTensors& tensors, const StepBatch& batch, int layer, int row,
                                              int terms, int apart, Get get, Value value) {
  const StepPlan& plan = shared_plan();
  const ConvPlan& conv = plan.conv[layer];
  const FinishPlan& finish = plan.conv_finish[layer];
  const NormTable table = norm_table(finish, finish.channels);
  const NormExchange exchange(tensors, finish, true);
  float* shared = shared_floats();
  const int lanes = 1 << finish.lanes_log;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int size = conv.pooled_height * conv.pooled_width;
  float* dy = shared + conv.dy + conv.dy_left;
  const float* picked = shared + finish.picked;
  const uint8_t* chosen = shared_bytes() + conv.chosen;
  const int dy_plane = conv.dy_plane;
  const int dy_pitch = conv.dy_pitch;
  const int stride_rows = conv.stride_rows;
  const int stride_columns = conv.stride_columns;
  const int window_columns = conv.window_columns;
  const Divisor by_window = conv.by_window;
  each_part<B>(finish, [&](int filter, int part, bool there) {
    const int first = min(part * finish.part_windows, size);
    const int count = there ? min(finish.part_windows, size - first) : 0;
    float2 sum = make_float2(0.0F, 0.0F);
#pragma unroll 1
    for (int j = lane; j < count; j += lanes) {
      const int place = first + j;
      const int r = divide(place, conv.by_row);
      const int c = place - r * conv.pooled_width;
      const int i = filter * size + place;
      const int which = chosen[i];
      if (which == 255) continue;
      const float* from = shared + get(filter, r, c, i);
      float d = 0.0F;
#pragma unroll 8
      for (int term = 0; term < terms; ++term) d += from[term * apart];
      const float x = table.standard(filter, picked[i]);
      if constexpr (B::kFinishes) {
        const uint32_t threshold = finish.finish.dropout.threshold;
        float y = threshold != 0 ? value(filter, r, c, i) : 0.0F;
        d = undrop(threshold, finish.finish.dropout.factor, d, y);
        const StepActivation activation = finish.finish.activation;
        if (conv.relu == 0) {
          d *= activation_gradient(activation, finish.finish.slope, x * table.gamma(filter) + table.beta(filter));
        }
      }
      const int in_row = divide(which, by_window);
      const int in_column = which - in_row * window_columns;
      dy[filter * dy_plane + (r * stride_rows + in_row) * dy_pitch + c * stride_columns + in_column] = d;
      sum.x += d;
      sum.y = fmaf(d, x, sum.y);
    }
    sum = sum_of_lanes(finish, sum);
    if (lane == 0 && there) tell(exchange.source(filter, (row << finish.parts_log) + part), sum, batch.run);
  });
}

// Tells the sums over each channel of the gradient behind a norm, where all elements have one.
template <class B>
__device__ __forceinline__ void conv_norm_sums(const StepTensors& tensors, const StepBatch& batch, int layer, int row) {
  const ConvPlan& conv = shared_plan().conv[layer];
  const FinishPlan& finish = shared_plan().conv_finish[layer];
  const NormTable table = norm_table(finish, finish.channels);
  const NormExchange exchange(tensors, finish, true);
  const int lanes = 1 << finish.lanes_log;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const float* u = shared_floats() + finish.u;
  const float* dy = shared_floats() + conv.dy + conv.dy_left;
  each_part<B>(finish, [&](int filter, int part, bool there) {
    const PartRows rows(conv.forward, finish, part);
    const int end = there ? (rows.first + rows.count) * finish.out_width : 0;
    float2 sum = make_float2(0.0F, 0.0F);
#pragma unroll 2
    for (int i = rows.first * finish.out_width + lane; i < end; i += lanes) {
      const int line = divide(i, finish.by_out_row);
      const int column = i - line * finish.out_width;
      const float d = dy[filter * conv.dy_plane + line * conv.dy_pitch + column];
      sum.x += d;
      sum.y = fmaf(d, table.standard(filter, u[filter * finish.plane + line * conv.forward.pitch + column]), sum.y);
    }
    sum = sum_of_lanes(finish, sum);
    if (lane == 0 && there) tell(exchange.source(filter, (row << finish.parts_log) + part), sum, batch.run);
  });
}

// The gradient in front of batch norm, in place of the one behind it, whose sums have been told. By all threads.
template <class B>
__device__ __forceinline__ void conv_norm_backward(const StepTensors& tensors, const StepBatch& batch, int layer,
                                                   int row) {
  constexpr int kWarps = B::kThreads / 32;
  const StepPlan& plan = shared_plan();
  const ConvPlan& conv = plan.conv[layer];
  const FinishPlan& finish = plan.conv_finish[layer];
  const NormTable table = norm_table(finish, finish.channels);
  const NormExchange exchange(tensors, finish, true);
  const int values = conv.filters * finish.plane;
  if (finish.picks != 0) {
    const int fours = (values + 3) / 4;
    const float* saved = tensors.workspace + finish.saved + int64_t{row} * fours * 4;
    for (int i = static_cast<int>(threadIdx.x); i < fours; i += B::kThreads) {
      copy_async<16>(shared_floats() + finish.u + 4 * i, saved + 4 * i);
    }
  }
  const int counted = counted_rows(plan, batch);
  if (threadIdx.x / 32 == kWarps - 1) {
    const auto n = static_cast<float>(counted) * static_cast<float>(finish.size);
    for (int c = row; c < finish.channels; c += plan.pass_blocks) {
      reduce_gradients(plan, tensors, finish, exchange, batch.run, c, counted << finish.parts_log, n);
    }
  }
  wait_for_results<B>(exchange, batch.run, 0, finish.channels, [&](int c, float2 result) {
    table.mean_d(c) = result.x;
    table.mean_dx(c) = result.y;
  });
  wait_for_copies();
  __syncthreads();
  const float2* u = reinterpret_cast<const float2*>(shared_floats() + finish.u);
  float* dy = shared_floats() + conv.dy + conv.dy_left;
  const int pitch = conv.forward.pitch;
  const int width = finish.out_width;
  const bool counts = row < counted;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < values / 2; i += B::kThreads) {
    const int filter = divide(2 * i, finish.by_plane);
    const int in_plane = 2 * i - filter * finish.plane;
    const int line = divide(in_plane, finish.by_pitch);
    const int column = in_plane - line * pitch;
    if (column >= width) continue;
    const float scale = counts ? table.gamma(filter) * table.rstd(filter) : 0.0F;
    const float mean_d = table.mean_d(filter);
    const float mean_dx = table.mean_dx(filter);
    const auto in_front = [&](float d, float value) {
      return counts ? scale * (d - mean_d - table.standard(filter, value) * mean_dx) : 0.0F;
    };
    float2* at = reinterpret_cast<float2*>(dy + filter * conv.dy_plane + line * conv.dy_pitch + column);
    float2 d = *at;
    d.x = in_front(d.x, u[i].x);
    if (column + 1 < width) d.y = in_front(d.y, u[i].y);
    *at = d;
  }
  __syncthreads();
}

}  // namespace gpunn::cuda_tiled
