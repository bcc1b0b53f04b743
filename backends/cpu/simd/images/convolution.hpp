// The inner kernels of convolution. Their operands have one image (or one strip of an image) in each vector lane: a
// pixel of a channel is a vector, so that any number of channels, stride, dilation and padding fills the machine.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

// y[i, j] = sum over taps (a, b, c) of w[i + taps * w_tap] * x[j * x_output + taps * x_tap]. Distances are in floats.
struct GatherTile {
  const float* x;
  int64_t x_output;
  int64_t x_tap[3];
  const float* w;
  int64_t w_tap[3];
  int64_t taps[3];
  float* y;
  int64_t y_channel;
  int64_t y_output;
  int channels;  // i, up to gather_channels
  int outputs;   // j, up to gather_outputs[channels]
};

// sum[k, t] += the sum over pixels (row, column) of dy[k, row, column] * x[row, column + tap t].
struct FilterTile {
  const float* dy;  // channels of a pixel are neighbouring vectors
  int64_t dy_row;
  int64_t dy_column;
  const float* x;
  int64_t x_row;
  int64_t x_column;
  const int64_t* tap_offset;  // [taps]
  int64_t rows;
  int64_t columns;
  float* sum;  // taps of a channel are neighbouring vectors
  int64_t sum_channel;
  int channels;  // k, up to filter_channels
  int taps;      // t, up to filter_taps[channels]
};

struct ConvolutionKernels {
  static constexpr int kMostChannels = 8;

  int lanes;
  int gather_channels;
  int gather_outputs[kMostChannels + 1];
  void (*gather)(const GatherTile& tile);
  int filter_channels;
  int filter_taps[kMostChannels + 1];
  void (*filter)(const FilterTile& tile);
  // to[j * step + lane] = from[lane][j], j < count; 0 for a lane that is null.
  void (*load_lanes)(const float* const* from, int64_t count, float* to, int64_t step);
  // to[lane][j] = from[j * lanes + lane] + bias, and the larger of that and 0 with relu. Lanes that are null are left.
  void (*store_lanes)(const float* from, int64_t count, float bias, bool relu, float* const* to);
  // to[i] = the sum of the lanes of vector i.
  void (*sum_lanes)(const float* from, int64_t count, float* to);
};

GPUNN_DECLARE_ISA_VARIANTS(ConvolutionKernels, convolution_kernels);

}  // namespace gpunn::cpu
