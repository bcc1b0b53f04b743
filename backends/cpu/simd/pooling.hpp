// Max pooling by windows of 2x2 at stride 2 without padding, the case of nearly every network.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

// One plane is [height, width] before pooling and [height / 2, width / 2] after.
struct PoolingKernels {
  void (*forward)(const float* x, float* y, int64_t planes, int64_t height, int64_t width);
  // Writes every element of dx once.
  void (*backward)(const float* dy, const float* x, const float* y, float* dx, int64_t planes, int64_t height,
                   int64_t width);
};

GPUNN_DECLARE_ISA_VARIANTS(PoolingKernels, pooling_kernels);

}  // namespace gpunn::cpu
