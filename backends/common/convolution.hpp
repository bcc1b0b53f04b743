// CONV2D, its backwards, CONV2D_BIAS_ACTIVATION and CONV2D_BIAS_ADD_ACTIVATION.
#pragma once

#include <cstdint>
#include <string>

#include "common/requirements.hpp"

namespace gpunn::backends {

// One axis: output o takes input o * stride - pad + t * dilation at tap t. Every member is at most 2^20, and so are
// all inputs that a tap of an output names, within a factor of 4: int32 holds them.
struct ConvolutionAxis {
  int64_t inputs;
  int64_t outputs;
  int64_t taps;
  int64_t stride;
  int64_t pad;
  int64_t dilation;
};

// x[batch, groups * group_inputs, rows, columns], w[groups * group_outputs, group_inputs, taps, taps] and
// y[batch, groups * group_outputs, rows, columns], none empty.
struct ConvolutionShape {
  int64_t batch;
  int64_t groups;
  int64_t group_inputs;   // channels of x in a group
  int64_t group_outputs;  // channels of y in a group
  ConvolutionAxis rows;
  ConvolutionAxis columns;
};

// Whether images and gradients are so small, and channels so few, that a block of a GPU can hold an image with all its
// channels on chip, at stride and dilation 1: what kernels for few channels serve, and libraries do badly.
bool has_few_channels(const ConvolutionShape& shape);

ConvolutionShape convolution_of(const OpDesc& desc);
ConvolutionShape convolution_backward_data_of(const OpDesc& desc);
ConvolutionShape convolution_backward_filter_of(const OpDesc& desc);

struct ConvolutionBiasActivation {
  ConvolutionShape shape;
  bool relu;
};

ConvolutionBiasActivation convolution_bias_activation_of(const OpDesc& desc);

enum class ConvolutionPass { forward, backward_data, backward_filter };

// Of the sum that is one element of the pass's output; fewer at the edges.
int64_t terms_of(ConvolutionPass pass, const ConvolutionShape& shape);

// "n=128 g=1 c=6 k=16 14/5s1p0d1 14/5s1p0d1": the shape as a tuning cache names it.
std::string text_of(const ConvolutionShape& shape);

}  // namespace gpunn::backends
