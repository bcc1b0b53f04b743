// What the general kernels do with a layer's sums: batch norm, activations, means of windows, dropout, and the way
// back.
//
// Dropout leaves a mark in what it makes: -0 is an element that was dropped, and nothing else is. So the way back draws
// no numbers.
//
// Batch norm needs sums over all images, which are in other blocks: each block tells the others its own, through memory
// that is the subgraph's alone, and adds up what it hears, in order. All blocks must be resident (step_kernels.cu sees
// to it).
#pragma once

#include <gpunn/random.h>

#include "step_batch.cuh"
#include "step_loss.cuh"
#include "step_pool.cuh"
#include "step_shared.cuh"
#include "step_sync.cuh"

namespace gpunn::cuda_tiled {

// What takes many instructions is called, not inlined: it is needed in many places, of which few run, and the kernels
// are slower the more code lies between what runs.
static __device__ __noinline__ float activate_curved(StepActivation activation, float x) {
  switch (activation) {
    case StepActivation::sigmoid:
      return 1.0F / (1.0F + expf(-x));
    case StepActivation::tanh:
      return tanhf(x);
    case StepActivation::gelu:
      return x * (0.5F * (1.0F + erff(x * 0.70710678118654752F)));
    case StepActivation::gelu_tanh:
      return x * (0.5F * (1.0F + tanhf(0.79788456080286536F * (x + 0.044715F * x * x * x))));
    default:
      return x / (1.0F + expf(-x));
  }
}

__device__ __forceinline__ float activate(StepActivation activation, float slope, float x) {
  if (activation > StepActivation::leaky_relu) return activate_curved(activation, x);
  if (activation == StepActivation::none || !(x < 0.0F)) return x;
  return activation == StepActivation::relu ? 0.0F : slope * x;
}

// By what f made, of those whose result says it.
__device__ __forceinline__ float gradient_by_result(StepActivation activation, float slope, float y) {
  if (activation == StepActivation::sigmoid) return y * (1.0F - y);
  if (activation == StepActivation::tanh) return 1.0F - y * y;
  if (activation == StepActivation::none || y > 0.0F) return 1.0F;
  return activation == StepActivation::relu ? 0.0F : slope;
}

static __device__ __noinline__ float gradient_curved(StepActivation activation, float x) {
  switch (activation) {
    case StepActivation::gelu:
      return 0.5F * (1.0F + erff(x * 0.70710678118654752F)) + x * 0.39894228040143268F * expf(-0.5F * x * x);
    case StepActivation::gelu_tanh: {
      const float t = tanhf(0.79788456080286536F * (x + 0.044715F * x * x * x));
      return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * 0.79788456080286536F * (1.0F + 3.0F * 0.044715F * x * x);
    }
    case StepActivation::silu: {
      const float s = 1.0F / (1.0F + expf(-x));
      return s * (1.0F + x * (1.0F - s));
    }
    default:
      return gradient_by_result(activation, 0.0F, activate_curved(activation, x));
  }
}

__device__ __forceinline__ float activation_gradient(StepActivation activation, float slope, float x) {
  if (activation > StepActivation::leaky_relu) return gradient_curved(activation, x);
  return gradient_by_result(activation, slope, x);
}

static __device__ __noinline__ uint32_t drawn_word(const StepDropout& dropout, uint64_t block, int word) {
  const gpunn_random_words words = gpunn_philox(dropout.seed, dropout.stream, block);
  return word == 0 ? words.word[0] : word == 1 ? words.word[1] : word == 2 ? words.word[2] : words.word[3];
}

// Dropout of a row of the batch, its numbers at hand: in shared memory each would be read for each element.
struct Dropping {
  const StepDropout* dropout;
  uint32_t threshold;
  float factor;
  int first;  // of the row's elements
  uint64_t block;

  __device__ __forceinline__ Dropping(const StepPlan& plan, const FinishPlan& finish, int64_t counter, int row)
      : dropout(&finish.finish.dropout),
        threshold(dropout->threshold),
        factor(dropout->factor),
        first(row * finish.row_size),
        block(gpunn_random_block(counter, int64_t{plan.batch} * finish.row_size)) {}

  // Element `i` of the row.
  __device__ __forceinline__ float operator()(int i, float value) const {
    if (threshold == 0) return value;
    const uint32_t drawn = drawn_word(*dropout, block + static_cast<uint64_t>((first + i) / 4), (first + i) % 4);
    return drawn >> 8 < threshold ? -0.0F : factor * value + 0.0F;
  }
};

// The gradient in front of dropout of one behind it, by what dropout made; `y` becomes what it was made of.
__device__ __forceinline__ float undrop(uint32_t threshold, float factor, float d, float& y) {
  if (threshold == 0) return d;
  if (__float_as_uint(y) == 0x80000000U) return 0.0F;
  y /= factor;
  return factor * d;
}

// What images tell each other: a number or two with the number of the run, so that whoever reads them sees by it that
// they have come. Neither a barrier nor a fence is needed.
__device__ __forceinline__ uint64_t tagged(float value, uint32_t run) {
  return uint64_t{run} << 32 | __float_as_uint(value);
}

__device__ __forceinline__ void tell(uint64_t* to, float value, uint32_t run) {
  asm volatile("st.volatile.global.u64 [%0], %1;" ::"l"(to), "l"(tagged(value, run)) : "memory");
}

__device__ __forceinline__ void tell(uint64_t* to, float2 values, uint32_t run) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(tagged(values.x, run)),
               "l"(tagged(values.y, run))
               : "memory");
}

__device__ __forceinline__ bool heard(const uint64_t* from, uint32_t run, float& value) {
  uint64_t word = 0;
  asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  value = __uint_as_float(static_cast<uint32_t>(word));
  return word >> 32 == run;
}

__device__ __forceinline__ bool heard(const uint64_t* from, uint32_t run, float2& values) {
  uint64_t words[2] = {};
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(words[0]), "=l"(words[1]) : "l"(from) : "memory");
  values =
      make_float2(__uint_as_float(static_cast<uint32_t>(words[0])), __uint_as_float(static_cast<uint32_t>(words[1])));
  return words[0] >> 32 == run && words[1] >> 32 == run;
}

// By a warp: use(row, what it told) for the first `rows` rows, whose words lie one behind the other from `from` on.
template <class T, class Use>
__device__ __forceinline__ void hear(const uint64_t* from, uint32_t run, int rows, Use use) {
  constexpr int kAtOnce = 4;
  constexpr int kWords = sizeof(T) / sizeof(float);
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int first = lane; first < rows; first += kAtOnce * 32) {
    T values[kAtOnce];
    bool all = false;
    while (!all) {
      all = true;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int row = min(first + i * 32, rows - 1);
        all = heard(from + int64_t{row} * kWords, run, values[i]) && all;
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * 32 < rows) use(values[i]);
    }
  }
  __syncwarp();
}

__device__ __forceinline__ uint64_t* exchange_of(const StepTensors& tensors, const FinishPlan& finish) {
  return reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(tensors.noted) + exchange_from(shared_plan())) +
         int64_t{finish.exchange} * 2;
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

// Of a channel, by a warp: the mean, and the sum of the squares of what is off it, of `n` elements. The first image's
// block leaves them for the running ones.
__device__ __forceinline__ void set_statistics(const StepPlan& plan, const StepTensors& tensors,
                                               const FinishPlan& finish, const NormTable& table, int slot, int channel,
                                               float mean, float squares, float n, bool writes) {
  if (threadIdx.x % 32 != 0) return;
  const bool any = n > 0.0F;
  const float variance = any ? squares / n : 0.0F;
  table.mean(slot) = any ? mean : 0.0F;
  table.rstd(slot) = any ? 1.0F / sqrtf(variance + finish.finish.norm.epsilon) : 0.0F;
  if (!any) table.beta(slot) = 0.0F;
  if (!writes) return;
  float* batch = tensors.workspace + plan.norm_gradients + plan.norms + finish.first_norm + channel;
  batch[0] = mean;
  batch[finish.channels] = n > 1.0F ? squares / (n - 1.0F) : variance;
}

__device__ __forceinline__ NormTable norm_table(const FinishPlan& finish, int channels) {
  return {shared_floats() + finish.statistics, channels};
}

// Two sums over each channel's elements of the block's image: value(filter, i) gives the terms. Leaves them as parts,
// of which there are as many as is said.
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

// Gamma and beta of a channel, a thread each: asked for early, since they take as long as all else.
template <class B>
struct Affine {
  static constexpr int kEach = 2;
  float gamma[kEach] = {};
  float beta[kEach] = {};

  __device__ __forceinline__ Affine(const StepTensors& tensors, const StepNorm& norm, int from, int channels) {
    if (norm.there == 0) return;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int c = static_cast<int>(threadIdx.x) + i * B::kThreads;
      if (c >= channels) continue;
      gamma[i] = __ldcg(tensors.parameters + norm.gamma + from + c);
      beta[i] = __ldcg(tensors.parameters + norm.beta + from + c);
    }
  }
  __device__ __forceinline__ void store(const NormTable& table, int channels) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int c = static_cast<int>(threadIdx.x) + i * B::kThreads;
      if (c >= channels) continue;
      table.gamma(c) = gamma[i];
      table.beta(c) = beta[i];
    }
  }
};

// Two numbers at a time through the sums of all filters, those between rows too: map(filter, value).
template <class B, class Map>
__device__ __forceinline__ void each_sum(const ConvPlan& conv, const FinishPlan& finish, Map map) {
  float2* sums = reinterpret_cast<float2*>(shared_floats() + conv.forward.sums);
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < conv.filters * finish.plane / 2; i += B::kThreads) {
    sums[i] = map(divide(2 * i, finish.by_plane), i, sums[i]);
  }
}

// The sums of row_pass() with bias: what batch norm or the activation begins with, and what is kept of it.
template <class B>
__device__ __forceinline__ void keep_sums(const StepTensors& tensors, const ConvPlan& conv, const FinishPlan& finish,
                                          int row) {
  const float* shared = shared_floats();
  const StepActivation activation = finish.finish.activation;
  const float slope = finish.finish.slope;
  const bool norm = finish.finish.norm.there != 0;
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
    if (norm) {
      __stcg(saved + i, u);
      return u;
    }
    const float2 v = make_float2(activate(activation, slope, u.x), activate(activation, slope, u.y));
    __stcg(saved + i, known_by_result(activation) ? v : u);
    return v;
  });
}

// What keep_sums() has kept, back to shared memory.
template <class B>
__device__ __forceinline__ void fetch_kept(const StepTensors& tensors, int row) {
  const StepPlan& plan = shared_plan();
#pragma unroll 1
  for (int layer = plan.n_convs - 1; layer >= 0; --layer) {
    const FinishPlan& finish = plan.conv_finish[layer];
    if (finish.kept == 0) continue;
    const int fours = (plan.conv[layer].filters * finish.plane + 3) / 4;
    const float* saved = tensors.workspace + finish.saved + int64_t{row} * fours * 4;
    for (int i = static_cast<int>(threadIdx.x); i < fours; i += B::kThreads) {
      copy_async<16>(shared_floats() + finish.u + 4 * i, saved + 4 * i);
    }
  }
}

// Mean and deviation of each channel over all images. `meet` meets the threads of B.
template <class B, class Meet>
__device__ __forceinline__ void conv_statistics(const StepTensors& tensors, const StepBatch& batch,
                                                const ConvPlan& conv, const FinishPlan& finish, int row, Meet meet) {
  constexpr int kWarps = B::kThreads / 32;
  const StepPlan& plan = shared_plan();
  const NormTable table = norm_table(finish, finish.channels);
  const float* u = shared_floats() + conv.forward.sums;
  const int between = conv.forward.pitch - finish.out_width;
  const int parts = sum_planes<B>(finish, table, [&](int filter, int i) {
    const int at = filter * finish.plane + i + divide(i, finish.by_out_row) * between;
    const float off = u[at] - u[filter * finish.plane];
    return make_float2(off, off * off);
  });
  meet();
  const int rows = pass_blocks(plan);
  uint64_t* exchange = exchange_of(tensors, finish);
  const auto size = static_cast<float>(finish.size);
  for (int c = static_cast<int>(threadIdx.x); c < finish.channels; c += B::kThreads) {
    const float2 sum = sum_parts(table, c, parts);
    const float off = sum.x / size;
    tell(exchange + 2 * (c * rows + row), make_float2(u[c * finish.plane] + off, fmaxf(sum.y - sum.x * off, 0.0F)),
         batch.run);
  }
  const int counted = counted_rows(plan, batch);
  for (int c = static_cast<int>(threadIdx.x / 32); c < finish.channels; c += kWarps) {
    const float reference = u[c * finish.plane];  // as good as any
    float off = 0.0F;
    float off_squares = 0.0F;
    float within = 0.0F;
    hear<float2>(exchange + 2 * c * rows, batch.run, counted, [&](float2 image) {
      const float d = image.x - reference;
      off += d;
      off_squares = fmaf(d, d, off_squares);
      within += image.y;
    });
    off = warp_sum(off);
    off_squares = warp_sum(off_squares);
    within = warp_sum(within);
    const auto n = static_cast<float>(counted);
    const float mean = off / fmaxf(n, 1.0F);
    const float spread = fmaxf(off_squares - off * mean, 0.0F);
    set_statistics(plan, tensors, finish, table, c, c, reference + mean, within + size * spread, n * size, row == 0);
  }
  meet();
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
  const NormTable table = norm_table(finish, finish.channels);
  const Affine<B> affine(tensors, finish.finish.norm, 0, finish.channels);
  keep_sums<B>(tensors, conv, finish, row);
  if (finish.finish.norm.there != 0) {
    affine.store(table, finish.channels);
    meet();
    conv_statistics<B>(tensors, batch, conv, finish, row, meet);
    each_sum<B>(conv, finish, [&](int filter, int, float2 u) {
      return make_float2(activate(activation, slope, table.normal(filter, u.x)),
                         activate(activation, slope, table.normal(filter, u.y)));
    });
  }
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
    if (two_by_two) {
      const float2 upper = *reinterpret_cast<const float2*>(window);
      const float2 lower = *reinterpret_cast<const float2*>(window + pitch);
      look(0, upper.x);
      look(1, upper.y);
      look(2, lower.x);
      look(3, lower.y);
    } else {
      int at = 0;
      for (int y = 0; y < conv.window_rows; ++y) {
        for (int x = 0; x < conv.window_columns; ++x) look(at++, window[y * pitch + x]);
      }
    }
    const int i = filter * size + place;
    chosen[i] = static_cast<uint8_t>(which);
    put(filter, r, c, i, drop(i, mean ? sum * share : most));
  });
}

// As unpool(), of all that the general kernels know: `result` says what the layer made, by (filter, row, column, i).
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

// The gradient in front of batch norm, in place of the one behind it. By all threads.
template <class B>
__device__ __forceinline__ void conv_norm_backward(const StepTensors& tensors, const StepBatch& batch, int layer,
                                                   int row) {
  constexpr int kWarps = B::kThreads / 32;
  const StepPlan& plan = shared_plan();
  const ConvPlan& conv = plan.conv[layer];
  const FinishPlan& finish = plan.conv_finish[layer];
  const NormTable table = norm_table(finish, finish.channels);
  const float* u = shared_floats() + finish.u;
  float* dy = shared_floats() + conv.dy + conv.dy_left;
  const int between = conv.forward.pitch - finish.out_width;
  const int dy_between = conv.dy_pitch - finish.out_width;
  const int parts = sum_planes<B>(finish, table, [&](int filter, int i) {
    const int line = divide(i, finish.by_out_row);
    const float d = dy[filter * conv.dy_plane + i + line * dy_between];
    return make_float2(d, d * table.standard(filter, u[filter * finish.plane + i + line * between]));
  });
  __syncthreads();
  const int rows = pass_blocks(plan);
  uint64_t* exchange = exchange_of(tensors, finish) + int64_t{2} * rows * finish.channels;
  for (int c = static_cast<int>(threadIdx.x); c < finish.channels; c += B::kThreads) {
    tell(exchange + 2 * (c * rows + row), sum_parts(table, c, parts), batch.run);
  }
  const int counted = counted_rows(plan, batch);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const float n = fmaxf(static_cast<float>(counted) * static_cast<float>(finish.size), 1.0F);
  for (int c = static_cast<int>(threadIdx.x / 32); c < finish.channels; c += kWarps) {
    float2 sum = make_float2(0.0F, 0.0F);
    hear<float2>(exchange + 2 * c * rows, batch.run, counted, [&](float2 image) {
      sum.x += image.x;
      sum.y += image.y;
    });
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
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < conv.filters * finish.size; i += B::kThreads) {
    const int filter = divide(i, finish.by_size);
    const int in_plane = i - filter * finish.size;
    const int line = divide(in_plane, finish.by_out_row);
    float& d = dy[filter * conv.dy_plane + in_plane + line * dy_between];
    const float x = table.standard(filter, u[filter * finish.plane + in_plane + line * between]);
    d = counts ? table.gamma(filter) * table.rstd(filter) * (d - table.mean_d(filter) - x * table.mean_dx(filter))
               : 0.0F;
  }
  __syncthreads();
}

// The sums of a dense layer's outputs [from, from + rows) over all images of the batch, for batch norm; `u` has the
// cluster's own. By all threads.
template <class B>
__device__ __forceinline__ void dense_statistics(const StepTensors& tensors, const StepBatch& batch, int layer,
                                                 int rows, int from, int rank, int first_row) {
  constexpr int kWarps = B::kThreads / 32;
  const StepPlan& plan = shared_plan();
  const DensePlan& dense = plan.dense[layer];
  const FinishPlan& finish = plan.dense_finish[layer];
  const float* u = shared_floats() + finish.u;
  const int pitch = pass_blocks(plan);
  uint64_t* exchange = exchange_of(tensors, finish);
  const NormTable table = norm_table(finish, dense.slice);
  const Affine<B> affine(tensors, finish.finish.norm, from, rows);
  for (int i = static_cast<int>(threadIdx.x); i < rows * B::kImages; i += B::kThreads) {
    const int image = i % B::kImages;
    if (dense.sliced == 0 && image != rank) continue;
    tell(exchange + (from + i / B::kImages) * pitch + first_row + image, u[i], batch.run);
  }
  affine.store(table, rows);
  __syncthreads();
  const int counted = counted_rows(plan, batch);
  const bool writes = first_row == 0 && (dense.sliced != 0 || rank == 0);
  for (int slot = static_cast<int>(threadIdx.x / 32); slot < rows; slot += kWarps) {
    const float reference = u[slot * B::kImages];  // as good as any
    float off = 0.0F;
    float squares = 0.0F;
    hear<float>(exchange + (from + slot) * pitch, batch.run, counted, [&](float x) {
      off += x - reference;
      squares = fmaf(x - reference, x - reference, squares);
    });
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
__device__ __forceinline__ void dense_norm_backward(const StepTensors& tensors, const StepBatch& batch, int layer,
                                                    int rows, int from, int rank, int first_row, Put put) {
  constexpr int kWarps = B::kThreads / 32;
  const StepPlan& plan = shared_plan();
  const DensePlan& dense = plan.dense[layer];
  const FinishPlan& finish = plan.dense_finish[layer];
  const float* u = shared_floats() + finish.u;
  const float* dy = shared_floats() + dense.dy;
  const NormTable table = norm_table(finish, dense.slice);
  const int pitch = pass_blocks(plan);
  // The pairs that a cluster tells: of the gradient, and of it times what was normalised.
  uint64_t* exchange = exchange_of(tensors, finish) + int64_t{pitch} * finish.channels;
  const int counted = counted_rows(plan, batch);
  const int clusters = pitch / B::kImages;
  const int cluster = first_row / B::kImages;
  for (int slot = static_cast<int>(threadIdx.x); slot < rows; slot += B::kThreads) {
    if (dense.sliced == 0 && rank != 0) continue;
    float2 sum = make_float2(0.0F, 0.0F);
#pragma unroll
    for (int image = 0; image < B::kImages; ++image) {
      const float d = first_row + image < counted ? dy[slot * B::kImages + image] : 0.0F;
      sum.x += d;
      sum.y = fmaf(d, table.standard(slot, u[slot * B::kImages + image]), sum.y);
    }
    tell(exchange + 2 * ((from + slot) * clusters + cluster), sum, batch.run);
  }
  const int lane = static_cast<int>(threadIdx.x % 32);
  const bool writes = first_row == 0 && (dense.sliced != 0 || rank == 0);
  for (int slot = static_cast<int>(threadIdx.x / 32); slot < rows; slot += kWarps) {
    float2 sum = make_float2(0.0F, 0.0F);
    hear<float2>(exchange + 2 * (from + slot) * clusters, batch.run, clusters, [&](float2 told) {
      sum.x += told.x;
      sum.y += told.y;
    });
    sum.x = warp_sum(sum.x);
    sum.y = warp_sum(sum.y);
    if (lane == 0) {
      const float n = fmaxf(static_cast<float>(counted), 1.0F);
      table.mean_d(slot) = sum.x / n;
      table.mean_dx(slot) = sum.y / n;
      if (writes) {
        float* gradients = tensors.workspace + plan.norm_gradients + finish.first_norm + from + slot;
        gradients[0] = sum.y;
        gradients[finish.channels] = sum.x;
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
