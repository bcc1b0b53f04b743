// Depthwise convolution of channels-last images: a filter a channel, of any size, stride and dilation.
#pragma once

#include <cstdint>
#include <vector>

#include "image_rows.hpp"
#include "simd/depthwise.hpp"

namespace gpunn::cpu {

// Whether each channel has one filter, of at most DepthwiseRun::kMostRows rows.
bool is_depthwise(const ConvolutionShape& shape);

// Forward, and backward to the data. Columns whose taps are all in the image are computed several at a time.
class DepthwiseImages {
 public:
  DepthwiseImages(const ConvolutionShape& shape, ConvolutionPass pass, int threads);

  double workspace_floats() const;
  void run(const float* source, const float* filter, const float* bias, bool relu, float* target,
           float* workspace) const;

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
  void run_row(int64_t image, int64_t row, const float* source, const float* taps, const float* bias, bool relu,
               float* target) const;

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
  void run(const float* dy, const float* x, float* dw, float* workspace) const;

 private:
  void add_row(int64_t image, int64_t row, const float* dy, const float* x, float* sums) const;

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
