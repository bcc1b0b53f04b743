// Convolution of channels-last images as matrix products (implicit GEMM): any filter, stride, dilation and grouping.
#pragma once

#include <cstdint>
#include <vector>

#include "convolution/constant_filter.hpp"
#include "convolution/epilogue.hpp"
#include "convolution/image_rows.hpp"
#include "simd/gemm.hpp"

namespace gpunn::cpu {

// Forward, and backward to the data: a row of what each target sees, times the filter. Rows are copied block by block
// into the second-level cache; a 1x1 convolution reads the images themselves.
class ImageProduct {
 public:
  ImageProduct(const ConvolutionShape& shape, ConvolutionPass pass, int threads);

  // In floats. As a double, for a shape whose scratch would overflow an integer.
  double workspace_floats() const;

  // The filter as run() reads it. Forward it depends on the layout alone.
  FilterLayout filter_layout() const;
  int64_t packed_floats() const;
  void pack_filter(const float* filter, float* packed, float* scratch) const;

  // source and target are x and y forward, dy and dx backward. scratch: the workspace behind the packed filter.
  void run(const float* source, const float* packed, const ConvolutionEpilogue& epilogue, float* target,
           float* scratch) const;

 private:
  // The work on the targets of one class.
  struct Part {
    TargetClass targets;
    int64_t lines;  // runs of targets that are evenly apart in memory
    int64_t line_targets;
    int64_t block_lines;    // of a task
    int64_t block_targets;  // of each of its lines; less than line_targets where block_lines is 1
    int64_t splits;         // of the panels
    int64_t packed_filter;  // where its panels begin, of the first group
    int64_t first_task;
    int64_t tasks;  // of a group

    int64_t line_blocks() const { return (line_targets + block_targets - 1) / block_targets; }
  };

  void multiply(const Part& part, int64_t group, int64_t task, const float* source, const float* packed,
                const ConvolutionEpilogue& epilogue, float* target, float* rows) const;

  const GemmKernels* kernels_;
  ConvolutionShape shape_;
  bool forward_;
  bool in_place_;
  int threads_;
  GroupedImages source_;
  GroupedImages target_;
  int64_t panel_;
  int64_t panels_;
  std::vector<Part> parts_;
  int64_t tasks_ = 0;         // of a group
  int64_t rows_floats_ = 0;   // of scratch for a task
  int64_t group_filter_ = 0;  // floats of a group's packed filter
};

// Backward to the filter: dy transposed times the rows of what each output sees, chunk by chunk of the outputs.
class ImageFilterProduct {
 public:
  ImageFilterProduct(const ConvolutionShape& shape, int threads);

  double workspace_floats() const;
  void run(const float* dy, const float* x, float* dw, float* workspace) const;

 private:
  struct Scratch {
    float* rows;
    float* dy;
  };

  void add_chunk(const float* dy, const float* x, int64_t group, int64_t chunk, int64_t block, float* sums,
                 const Scratch& scratch) const;

  const GemmKernels* kernels_;
  ConvolutionShape shape_;
  int threads_;
  GroupedImages x_;
  GroupedImages dy_;
  TargetClass targets_;
  int64_t outputs_;     // of all images
  int64_t block_taps_;  // of a task; 1 where block_channels_ are not all
  int64_t block_channels_;
  int64_t channel_blocks_;
  int64_t blocks_;
  int64_t chunks_;
  int64_t depth_;  // outputs that are multiplied at once
  int64_t rows_stride_;
  int64_t dy_tile_;  // floats of a packed tile of dy
  int64_t rows_at_once_;
  bool x_in_place_;
  bool dy_in_place_;
};

}  // namespace gpunn::cpu
