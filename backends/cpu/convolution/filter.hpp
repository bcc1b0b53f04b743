// Convolution backward to the filter.
#pragma once

#include <cstdint>
#include <vector>

#include "convolution/gather.hpp"
#include "convolution/image_lanes.hpp"

namespace gpunn::cpu {

// dw[k, c, r, s] as sums over pixels of products of vectors, one image in each lane. The batch is cut into chunks by
// its shape alone; each chunk's sums are kept apart and added in order, so that the bits don't depend on the threads.
class ConvolutionFilter {
 public:
  ConvolutionFilter(const ConvolutionShape& shape, int threads);

  // In floats. As a double, for a shape whose scratch would overflow an integer.
  double workspace_floats() const;

  // Allocates what run needs; once, before it.
  void prepare();

  void run(const float* dy, const float* x, float* dw, float* workspace) const;

 private:
  struct Scratch {
    float* x;     // [input channel][row][column][lane]
    float* dy;    // [tile of output channels][row][column][channel][lane]
    float* sums;  // [output channel][tap][lane]
  };

  // The part of the gradient that a task works on: a range of output and of input channels, numbered in the group.
  struct Part {
    int64_t group;
    int64_t first_output;
    int64_t outputs;
    int64_t first_input;
    int64_t inputs;
  };

  void add_chunk(const float* dy, const float* x, int64_t chunk, const Part& part, const Scratch& scratch) const;
  void load_band(const float* dy, const float* x, int64_t block, const Part& part, int64_t begin, int64_t end,
                 const Scratch& scratch) const;
  void add_band(const Part& part, int64_t rows, const Scratch& scratch) const;

  const ConvolutionKernels* kernels_;
  ConvolutionShape shape_;
  int threads_;
  AxisClass rows_;
  AxisClass columns_;
  ImageLanes lanes_;
  int64_t left_margin_;
  int64_t scratch_width_;
  int64_t plane_taps_;        // rows x columns of the filter
  int64_t channels_in_tile_;  // output channels
  int64_t outputs_in_task_;
  int64_t inputs_in_task_;
  int64_t band_rows_;    // of dy, in scratch at once
  int64_t source_rows_;  // of x, for such a band
  int64_t chunks_;
  std::vector<int64_t> tap_offset_;  // in scratch.x
};

}  // namespace gpunn::cpu
