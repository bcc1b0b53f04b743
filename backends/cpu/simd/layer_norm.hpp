// Loops over the rows of x[rows, columns].
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct LayerNormKernels {
  // y, mean[rows] and rstd[rows]; y may be x.
  void (*forward)(const float* x, const float* gamma, const float* beta, float epsilon, float* y, float* mean,
                  float* rstd, int64_t rows, int64_t columns);
  // dx may be dy or x.
  void (*backward)(const float* dy, const float* x, const float* gamma, const float* mean, const float* rstd, float* dx,
                   int64_t rows, int64_t columns);
  // Adds to dgamma[width] and dbeta[width], of `width` columns that begin at dy and x, `stride` elements between their
  // rows.
  void (*columns)(const float* dy, const float* x, const float* mean, const float* rstd, double* dgamma, double* dbeta,
                  int64_t rows, int64_t stride, int64_t width);
};

GPUNN_DECLARE_ISA_VARIANTS(LayerNormKernels, layer_norm_kernels);

}  // namespace gpunn::cpu
