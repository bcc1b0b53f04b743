#include "simd/images/convolution.hpp"

#include "simd/lanes/vec.hpp"

namespace gpunn::cpu::GPUNN_ISA {

// Tiles as large as the registers hold, index 0 unused.
#if defined(__AVX512F__)
constexpr int kGatherChannels = 8;
constexpr int kGatherOutputs[] = {0, 8, 8, 8, 6, 5, 4, 3, 3};
constexpr int kFilterChannels = 6;
constexpr int kFilterTaps[] = {0, 8, 8, 8, 6, 5, 4};
#elif defined(__AVX2__)
constexpr int kGatherChannels = 6;
constexpr int kGatherOutputs[] = {0, 8, 5, 3, 3, 2, 2};
constexpr int kFilterChannels = 3;
constexpr int kFilterTaps[] = {0, 8, 6, 4};
#else
constexpr int kGatherChannels = 4;
constexpr int kGatherOutputs[] = {0, 6, 4, 3, 2};
constexpr int kFilterChannels = 3;
constexpr int kFilterTaps[] = {0, 6, 4, 3};
#endif

// The compiler unrolls the short innermost loop if it knows the number of taps, which saves a tenth of the time.
// known_taps 0: it does not.
template <int channels, int outputs, int known_taps>
static void gather(const GatherTile& t) {
  Vec sum[channels][outputs];
#pragma GCC unroll 8
  for (int i = 0; i < channels; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < outputs; ++j) sum[i][j] = zero();
  }
  const int64_t x_output = t.x_output;
  const int64_t x_step = t.x_tap[2];
  const int64_t w_step = t.w_tap[2];
  for (int64_t a = 0; a < t.taps[0]; ++a) {
    for (int64_t b = 0; b < t.taps[1]; ++b) {
      const float* x = t.x + a * t.x_tap[0] + b * t.x_tap[1];
      const float* w = t.w + a * t.w_tap[0] + b * t.w_tap[1];
      const int64_t taps = known_taps > 0 ? known_taps : t.taps[2];
#pragma GCC unroll 5
      for (int64_t c = 0; c < taps; ++c) {
        Vec xv[outputs];
#pragma GCC unroll 8
        for (int j = 0; j < outputs; ++j) xv[j] = load(x + j * x_output);
#pragma GCC unroll 8
        for (int i = 0; i < channels; ++i) {
          const Vec wv = broadcast(w[i]);
#pragma GCC unroll 8
          for (int j = 0; j < outputs; ++j) sum[i][j] += wv * xv[j];
        }
        x += x_step;
        w += w_step;
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < channels; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < outputs; ++j) store(t.y + i * t.y_channel + j * t.y_output, sum[i][j]);
  }
}

template <int channels, int outputs>
static void gather_of(const GatherTile& t) {
  // NOLINTNEXTLINE(bugprone-branch-clone): a table of instances repeats its branches
  if (t.channels != channels) {
    if constexpr (channels > 1) gather_of<channels - 1, kGatherOutputs[channels - 1]>(t);
  } else if (t.outputs != outputs) {
    if constexpr (outputs > 1) gather_of<channels, outputs - 1>(t);
  } else if (t.taps[2] == 5) {
    gather<channels, outputs, 5>(t);
  } else if (t.taps[2] == 3) {
    gather<channels, outputs, 3>(t);
  } else {
    gather<channels, outputs, 0>(t);
  }
}

static void any_gather(const GatherTile& t) { gather_of<kGatherChannels, kGatherOutputs[kGatherChannels]>(t); }

template <int channels, int taps>
static void filter(const FilterTile& t) {
  Vec sum[channels][taps];
#pragma GCC unroll 8
  for (int i = 0; i < channels; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < taps; ++j) sum[i][j] = load(t.sum + i * t.sum_channel + j * kLanes);
  }
  int64_t offset[taps];
#pragma GCC unroll 8
  for (int j = 0; j < taps; ++j) offset[j] = t.tap_offset[j];
  const int64_t dy_column = t.dy_column;
  const int64_t x_column = t.x_column;
  for (int64_t row = 0; row < t.rows; ++row) {
    const float* dy = t.dy + row * t.dy_row;
    const float* x = t.x + row * t.x_row;
    for (int64_t column = t.columns; column > 0; --column) {
      Vec dv[channels];
#pragma GCC unroll 8
      for (int i = 0; i < channels; ++i) dv[i] = load(dy + i * kLanes);
#pragma GCC unroll 8
      for (int j = 0; j < taps; ++j) {
        const Vec xv = load(x + offset[j]);
#pragma GCC unroll 8
        for (int i = 0; i < channels; ++i) sum[i][j] += dv[i] * xv;
      }
      dy += dy_column;
      x += x_column;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < channels; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < taps; ++j) store(t.sum + i * t.sum_channel + j * kLanes, sum[i][j]);
  }
}

template <int channels, int taps>
static void filter_of(const FilterTile& t) {
  // NOLINTNEXTLINE(bugprone-branch-clone): a table of instances repeats its branches
  if (t.channels != channels) {
    if constexpr (channels > 1) filter_of<channels - 1, kFilterTaps[channels - 1]>(t);
  } else if (t.taps != taps) {
    if constexpr (taps > 1) filter_of<channels, taps - 1>(t);
  } else {
    filter<channels, taps>(t);
  }
}

static void any_filter(const FilterTile& t) { filter_of<kFilterChannels, kFilterTaps[kFilterChannels]>(t); }

static void load_lanes(const float* const* from, int64_t count, float* to, int64_t step) {
  bool all = true;
  for (int lane = 0; lane < kLanes; ++lane) all = all && from[lane] != nullptr;
  int64_t j = 0;
  Vec rows[kLanes];
  if (all) {
    for (; j + kLanes <= count; j += kLanes) {
#pragma GCC unroll 16
      for (int lane = 0; lane < kLanes; ++lane) rows[lane] = load(from[lane] + j);
      transpose(rows);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) store(to + (j + i) * step, rows[i]);
    }
  }
  for (; j < count; j += kLanes) {
    const int n = count - j < kLanes ? static_cast<int>(count - j) : kLanes;
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane) {
      rows[lane] = from[lane] != nullptr ? load_first(from[lane] + j, n) : zero();
    }
    transpose(rows);
    if (n == kLanes) {
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) store(to + (j + i) * step, rows[i]);
    } else {
      for (int i = 0; i < n; ++i) store(to + (j + i) * step, rows[i]);
    }
  }
}

static void store_lanes(const float* from, int64_t count, float bias, bool relu, float* const* to) {
  const Vec bias_vec = broadcast(bias);
  for (int64_t j = 0; j < count; j += kLanes) {
    const int n = count - j < kLanes ? static_cast<int>(count - j) : kLanes;
    Vec rows[kLanes];
    if (n == kLanes) {
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) rows[i] = load(from + (j + i) * kLanes);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) rows[i] = i < n ? load(from + (j + i) * kLanes) : zero();
    }
#pragma GCC unroll 16
    // NOLINTNEXTLINE(modernize-loop-convert): a counted loop is vectorised
    for (int i = 0; i < kLanes; ++i) rows[i] += bias_vec;
    if (relu) {
#pragma GCC unroll 16
      // NOLINTNEXTLINE(modernize-loop-convert): as above
      for (int i = 0; i < kLanes; ++i) rows[i] = max_or_nan(rows[i], zero());
    }
    transpose(rows);
    if (n == kLanes) {
#pragma GCC unroll 16
      for (int lane = 0; lane < kLanes; ++lane) {
        if (to[lane] != nullptr) store(to[lane] + j, rows[lane]);
      }
    } else {
#pragma GCC unroll 16
      for (int lane = 0; lane < kLanes; ++lane) {
        if (to[lane] != nullptr) store_first(to[lane] + j, rows[lane], n);
      }
    }
  }
}

static void sum_all(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = sum_lanes(load(from + i * kLanes));
}

template <int size>
static constexpr ConvolutionKernels with_tiles(ConvolutionKernels kernels, const int (&gather_outputs)[size]) {
  for (int i = 0; i < size; ++i) kernels.gather_outputs[i] = gather_outputs[i];
  for (int i = 0; i <= kFilterChannels; ++i) kernels.filter_taps[i] = kFilterTaps[i];
  return kernels;
}

constinit const ConvolutionKernels convolution_kernels = with_tiles(
    ConvolutionKernels{
        kLanes, kGatherChannels, {}, any_gather, kFilterChannels, {}, any_filter, load_lanes, store_lanes, sum_all},
    kGatherOutputs);

}  // namespace gpunn::cpu::GPUNN_ISA
