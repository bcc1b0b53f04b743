// Depthwise convolution of channels-last images: a filter a channel, of any size, stride and dilation. A network of
// these and of 1x1 convolutions takes 0.7 of the time that it took with packed images.
#pragma once

#include <cstdint>
#include <vector>

#include "convolution/image_rows.hpp"
#include "simd/images/depthwise.hpp"

namespace gpunn::cpu {

// Whether each channel has one filter, of at most kMostDepthwiseRows rows.
bool is_depthwise(const ConvolutionShape& shape);

// Forward, and backward to the data. Columns whose taps are all in the image are computed several at a time.
class DepthwiseImages {
 public:
  DepthwiseImages(const ConvolutionShape& shape, ConvolutionPass pass, int threads);

  double workspace_floats() const;
  // T is float or BFloat16.
  template <class T>
  void run(const T* source, const T* filter, const float* bias, bool relu, T* target, float* workspace) const;

 private:
  // Targets of a class of columns that take the same taps.
  struct Columns {
    int64_t first_target;
    int64_t target_step;
    int64_t targets;
    int64_t source;      // column of the first target's first tap
    int64_t per_target;  // columns
    int64_t per_tap;
    int64_t tap;
    int64_t tap_step;
    int64_t taps;
  };

  void add_columns(const AxisClass& columns);
  template <class T>
  void run_row(int64_t image, int64_t row, int64_t first_channel, int64_t channels_at_once, const T* source,
               const float* taps, const float* bias, bool relu, T* target) const;

  const DepthwiseKernels* kernels_;
  int threads_;
  int64_t batch_;
  int64_t tap_rows_, tap_columns_;
  GroupedImages source_;
  GroupedImages target_;
  std::vector<AxisClass> row_classes_;
  std::vector<Columns> columns_;
};

// Backward to the filter, chunk by chunk of the batch.
class DepthwiseFilter {
 public:
  DepthwiseFilter(const ConvolutionShape& shape, int threads);

  double workspace_floats() const;
  template <class T>
  void run(const T* dy, const T* x, T* dw, float* workspace) const;

 private:
  template <class T>
  void add_row(int64_t image, int64_t row, int64_t first_channel, int64_t channels_at_once, const T* dy, const T* x,
               float* sums) const;

  const DepthwiseKernels* kernels_;
  int threads_;
  int64_t batch_;
  GroupedImages x_;
  GroupedImages dy_;
  AxisClass rows_;
  AxisClass columns_;
  int64_t chunks_;
};

}  // namespace gpunn::cpu
