// Element-wise loops over packed f32. Outputs may be the very memory of an input.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct ElementwiseKernels {
  void (*add)(const float* a, const float* b, float* y, int64_t n);
  void (*scale)(const float* x, float factor, float* y, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(ElementwiseKernels, elementwise_kernels);

}  // namespace gpunn::cpu
