// Activations and their backwards over packed f32. Outputs may be the very memory of an input.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct ActivationKernels {
  // y = f(x); dx = f'(dy, v), v being x or y as ops.h says.
  using Forward = void (*)(const float* x, float* y, int64_t n);
  using Backward = void (*)(const float* dy, const float* v, float* dx, int64_t n);

  Forward relu, sigmoid, tanh, silu, gelu_erf, gelu_tanh;
  Backward relu_backward, sigmoid_backward, tanh_backward, silu_backward, gelu_erf_backward, gelu_tanh_backward;
  void (*leaky_relu)(const float* x, float slope, float* y, int64_t n);
  void (*leaky_relu_backward)(const float* dy, const float* x, float slope, float* dx, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(ActivationKernels, activation_kernels);

}  // namespace gpunn::cpu
