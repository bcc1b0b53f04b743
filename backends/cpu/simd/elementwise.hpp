// Element-wise loops over packed f32. Outputs may be the very memory of an input.
#pragma once

#include <cstdint>

#include "isa.hpp"
#include "simd/arithmetic.hpp"

namespace gpunn::cpu {

struct ElementwiseKernels {
  void (*scale)(const float* x, float factor, float* y, int64_t n);
  void (*axpby)(float alpha, const float* a, float beta, const float* b, float* y, int64_t n);
  void (*clamp)(const float* x, float low, float high, float* y, int64_t n);
  void (*leaky_relu)(const float* x, float slope, float* y, int64_t n);
  void (*leaky_relu_backward)(const float* dy, const float* x, float slope, float* dx, int64_t n);
  Unary gelu_erf, gelu_tanh;
  Binary gelu_erf_backward, gelu_tanh_backward;  // of dy and x
  // y += factor * sign(x), the sign of 0 (and NaN) being 0.
  void (*add_sign)(float factor, const float* x, float* y, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(ElementwiseKernels, elementwise_kernels);

}  // namespace gpunn::cpu
