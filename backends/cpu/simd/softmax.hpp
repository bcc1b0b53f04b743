// Softmax and cross-entropy over the rows of x[rows, columns], packed f32. Outputs do not overlap inputs.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct SoftmaxKernels {
  void (*softmax)(const float* x, float* y, int64_t rows, int64_t columns);
  void (*softmax_backward)(const float* dy, const float* y, float* dx, int64_t rows, int64_t columns);
  void (*log_softmax)(const float* x, float* y, int64_t rows, int64_t columns);
  void (*log_softmax_backward)(const float* dy, const float* y, float* dx, int64_t rows, int64_t columns);
  // dx = dloss * (exp(logp) - onehot(label)); 0 in rows whose label is none of the columns.
  void (*cross_entropy_backward)(const float* dloss, const float* logp, const int32_t* label, float* dx, int64_t rows,
                                 int64_t columns);
  void (*exp)(const float* x, float* y, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(SoftmaxKernels, softmax_kernels);

}  // namespace gpunn::cpu
