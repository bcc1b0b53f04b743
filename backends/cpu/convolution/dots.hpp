// Convolution forward of few pixels with large filters.
#pragma once

#include <cstdint>

#include "common/convolution.hpp"
#include "simd/lanes/dots.hpp"

namespace gpunn::cpu {

using backends::ConvolutionShape;

// What each output pixel sees is copied in the order of a filter, so that a pixel of an output channel is a scalar
// product of two contiguous rows. The filter is read once, as it is. ConvolutionGather is faster where many pixels
// share the rearranging of the filter that it begins with.
class ConvolutionDots {
 public:
  // Whether this is the faster way.
  static bool suits(const ConvolutionShape& shape);

  ConvolutionDots(const ConvolutionShape& shape, int threads);

  // In floats.
  double workspace_floats() const;

  // bias [channels of y] may be null.
  void run(const float* x, const float* filter, const float* bias, bool relu, float* y, float* workspace) const;

 private:
  void copy_seen(const float* x, int64_t group, int64_t pixel, float* to) const;

  const DotKernels* kernels_;
  ConvolutionShape shape_;
  int threads_;
  int64_t pixels_;  // of all images
  int64_t terms_;   // of a scalar product
};

}  // namespace gpunn::cpu
