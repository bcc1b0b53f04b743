// CONV2D, its gradients, CONV2D_BIAS_ACTIVATION and CONV2D_BIAS_ADD_ACTIVATION.
#pragma once

#include <cstdint>
#include <string>

#include "common/requirements.hpp"

namespace gpunn::backends {

// One axis: output o reads input o * stride - pad + t * dilation at tap t. Every member is at most 2^20. The inputs
// that the taps read exceed this at most by a factor of 4, so int32 holds them.
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

// Whether one GPU thread block can hold an image with all its channels on chip, at stride and dilation 1. The kernels
// for few channels serve these shapes, on which libraries are slow.
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

// The number of terms in one output element of the pass; elements at the edges have fewer.
int64_t terms_of(ConvolutionPass pass, const ConvolutionShape& shape);

// What a fused op does behind the convolution, in this order.
struct ConvolutionEpilogue {
  bool bias = false;
  bool residual = false;
  bool relu = false;
};

// The op in the form that a tuning cache uses: "conv2d_backward_data", "conv2d_bias_add_relu".
std::string text_of(ConvolutionPass pass, const ConvolutionEpilogue& epilogue);

// The shape in the form that a tuning cache uses: "n=128 g=1 c=6 k=16 14/5s1p0d1 14/5s1p0d1".
std::string text_of(const ConvolutionShape& shape);

}  // namespace gpunn::backends
