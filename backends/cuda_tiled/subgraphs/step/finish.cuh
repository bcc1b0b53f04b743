// The epilogue of convolutions in the kernels with kFinishPart: activations, means of windows and dropout, and their
// gradients.
#pragma once

#include "subgraphs/step/activation.cuh"
#include "subgraphs/step/batch.cuh"
#include "subgraphs/step/norm.cuh"
#include "subgraphs/step/pool.cuh"
#include "subgraphs/step/shared.cuh"

namespace gpunn::cuda_tiled {

// Two numbers at a time through the sums of all filters, those between rows too: map(filter, value).
template <class B, class Map>
__device__ __forceinline__ void each_sum(const ConvPlan& conv, const FinishPlan& finish, Map map) {
  float2* sums = reinterpret_cast<float2*>(shared_floats() + conv.forward.sums);
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < conv.filters * finish.plane / 2; i += B::kThreads) {
    sums[i] = map(divide(2 * i, finish.by_plane), i, sums[i]);
  }
}

// The activation of row_pass()'s sums with bias, and what is kept of it.
template <class B>
__device__ __forceinline__ void keep_sums(const StepTensors& tensors, const ConvPlan& conv, const FinishPlan& finish,
                                          int row) {
  const float* shared = shared_floats();
  const StepActivation activation = finish.finish.activation;
  const float slope = finish.finish.slope;
  const int splits = conv.forward.splits;
  const int a_split = conv.filters * finish.plane;
  const float2* others = reinterpret_cast<const float2*>(shared + conv.forward.sums);
  float2* saved = reinterpret_cast<float2*>(tensors.workspace + finish.saved + int64_t{row} * ((a_split + 3) / 4 * 4));
  each_sum<B>(conv, finish, [&](int filter, int i, float2 u) {
    for (int split = 1; split < splits; ++split) {
      const float2 more = others[split * (a_split / 2) + i];
      u.x += more.x;
      u.y += more.y;
    }
    const float bias = shared[conv.bias + filter];
    u.x += bias;
    u.y += bias;
    const float2 v = make_float2(activate(activation, slope, u.x), activate(activation, slope, u.y));
    __stcg(saved + i, known_by_result(activation) ? v : u);
    return v;
  });
}

// Copies the values kept by the forward pass back to shared memory: the elements that windows picked, or all sums.
template <class B>
__device__ __forceinline__ void fetch_kept(const StepTensors& tensors, int row) {
  const StepPlan& plan = shared_plan();
#pragma unroll 1
  for (int layer = plan.n_convs - 1; layer >= 0; --layer) {
    const FinishPlan& finish = plan.conv_finish[layer];
    if (finish.kept == 0) continue;
    const bool picks = finish.picks != 0;
    const int fours = ((picks ? finish.row_size : plan.conv[layer].filters * finish.plane) + 3) / 4;
    const float* saved = tensors.workspace + (picks ? finish.saved_picks : finish.saved) + int64_t{row} * fours * 4;
    float* to = shared_floats() + (picks ? finish.picked : finish.u);
    for (int i = static_cast<int>(threadIdx.x); i < fours; i += B::kThreads) copy_async<16>(to + 4 * i, saved + 4 * i);
  }
}

// From an image's sums to what the next layer reads, to put(filter, row, column, i, value). `meet` meets the threads of
// B.
template <class B, class Put, class Meet>
__device__ __forceinline__ void finish_conv_general(const StepTensors& tensors, const StepBatch& batch, int layer,
                                                    int row, Put put, Meet meet) {
  const StepPlan& plan = shared_plan();
  const ConvPlan& conv = plan.conv[layer];
  const FinishPlan& finish = plan.conv_finish[layer];
  const StepActivation activation = finish.finish.activation;
  const float slope = finish.finish.slope;
  const Dropping drop(plan, finish, batch.counter, row);
  if (finish.kept == 0) {
    const bool relu = conv.relu != 0;
    finish_conv<B>(conv, [&](int filter, int r, int c, int i, float value) {
      if (!relu) value = activate(activation, slope, value);
      put(filter, r, c, i, drop(i, value));
    });
    return;
  }
  bool normed = false;
  if constexpr (B::kNorms) {
    normed = finish.finish.norm.there != 0;
    if (normed) {
      const NormTable table = norm_table(finish, finish.channels);
      const Affine<B> affine(tensors, finish.finish.norm, 0, finish.channels);
      tell_statistics<B>(tensors, batch, conv, finish, row);
      affine.store(table, finish.channels, counted_rows(plan, batch) > 0);
      wait_for_statistics<B>(NormExchange(tensors, finish, false), table, batch.run, 0, finish.channels);
      meet();
      each_sum<B>(conv, finish, [&](int filter, int, float2 u) {
        return make_float2(activate(activation, slope, table.normal(filter, u.x)),
                           activate(activation, slope, table.normal(filter, u.y)));
      });
    }
  }
  if (!normed) keep_sums<B>(tensors, conv, finish, row);
  meet();
  const float* values = shared_floats() + conv.forward.sums;
  uint8_t* chosen = shared_bytes() + conv.chosen;
  const int pitch = conv.forward.pitch;
  const int size = conv.pooled_height * conv.pooled_width;
  const bool two_by_two = conv.window_rows == 2 && conv.window_columns == 2 && conv.stride_columns % 2 == 0;
  const int plane = finish.plane;
  const int stride_rows = conv.stride_rows * pitch;
  const int stride_columns = conv.stride_columns;
  const bool mean = finish.mean != 0;
  const float share = finish.mean_share;
  each_pooled<B>(conv, [&](int filter, int place, int r, int c) {
    const float* window = values + filter * plane + r * stride_rows + c * stride_columns;
    float most = 0.0F;
    float sum = 0.0F;
    int which = 0;
    const auto look = [&](int at, float value) {
      sum += value;
      if (at == 0 || (!(value <= most) && !isnan(most))) {
        most = value;
        which = at;
      }
    };
    each_of_window(conv, two_by_two, window, pitch, look);
    const int i = filter * size + place;
    chosen[i] = static_cast<uint8_t>(which);
    put(filter, r, c, i, drop(i, mean ? sum * share : most));
  });
}

// As unpool(), of all that kernels with kFinishPart know: `result` says what the layer made, by (filter, row, column,
// i).
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
  const int size = conv.pooled_height * conv.pooled_width;
  const int pitch = conv.forward.pitch;
  const float* u = shared + finish.u;
  float* dy = shared + conv.dy + conv.dy_left;
  const uint8_t* chosen = shared_bytes() + conv.chosen;
  float2* windows = reinterpret_cast<float2*>(shared + conv.windows);
  const auto slope_at = [&](int filter, float kept) {
    if (norm) return activation_gradient(activation, slope, table.normal(filter, kept));
    return known_by_result(activation) ? gradient_by_result(activation, slope, kept)
                                       : activation_gradient(activation, slope, kept);
  };
  const bool two_by_two =
      finish.mean != 0 && conv.window_rows == 2 && conv.window_columns == 2 && conv.stride_columns % 2 == 0;
  // At hand, as in unpool().
  const uint32_t threshold = finish.finish.dropout.threshold;
  const float factor = finish.finish.dropout.factor;
  const float share = finish.mean_share;
  const int plane = finish.plane;
  const int dy_plane = conv.dy_plane;
  const int dy_pitch = conv.dy_pitch;
  const int x_pitch = conv.x_pitch;
  const int stride_rows = conv.stride_rows;
  const int stride_columns = conv.stride_columns;
  const int window_rows = conv.window_rows;
  const int window_columns = conv.window_columns;
  const Divisor by_window = conv.by_window;
  const bool sparse = conv.sparse != 0;
  const bool is_kept = finish.kept != 0;
  const bool mean = finish.mean != 0;
  const bool relu = conv.relu != 0;
  each_pooled<B>(conv, [&](int filter, int place, int row, int column) {
    const int i = filter * size + place;
    const float* from = shared + get(filter, row, column, i);
    const int which = chosen[i];
    float y = result(filter, row, column, i);
    float d = 0.0F;
#pragma unroll 8
    for (int term = 0; term < terms; ++term) d += from[term * apart];
    d = undrop(threshold, factor, d, y);
    const int first_row = row * stride_rows;
    const int first_column = column * stride_columns;
    float* window = dy + filter * dy_plane + first_row * dy_pitch + first_column;
    const int r = divide(which, by_window);
    const int c = which - r * window_columns;
    if (!is_kept) {
      if (which == 255) {
        if (sparse) windows[i] = make_float2(0.0F, 0.0F);
        return;
      }
      if (!relu) d *= gradient_by_result(activation, slope, y);
      window[r * dy_pitch + c] = d;
      if (sparse) windows[i] = make_float2(__int_as_float((first_row + r) * x_pitch + first_column + c), d);
      return;
    }
    const float* kept = u + filter * plane + first_row * pitch + first_column;
    if (two_by_two) {
      d *= share;
      const float2 upper = *reinterpret_cast<const float2*>(kept);
      const float2 lower = *reinterpret_cast<const float2*>(kept + pitch);
      *reinterpret_cast<float2*>(window) = make_float2(d * slope_at(filter, upper.x), d * slope_at(filter, upper.y));
      *reinterpret_cast<float2*>(window + dy_pitch) =
          make_float2(d * slope_at(filter, lower.x), d * slope_at(filter, lower.y));
      return;
    }
    if (!mean) {
      window[r * dy_pitch + c] = d * slope_at(filter, kept[r * pitch + c]);
      return;
    }
    d *= share;
    for (int line = 0; line < window_rows; ++line) {
      for (int at = 0; at < window_columns; ++at) {
        window[line * dy_pitch + at] = d * slope_at(filter, kept[line * pitch + at]);
      }
    }
  });
}

}  // namespace gpunn::cuda_tiled
