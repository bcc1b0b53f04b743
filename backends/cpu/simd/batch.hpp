// y = x * scale + shift over n neighbouring numbers of one channel.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct BatchKernels {
  void (*normalize_u8)(const uint8_t* x, float scale, float shift, float* y, int64_t n);
  void (*normalize_f32)(const float* x, float scale, float shift, float* y, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(BatchKernels, batch_kernels);

}  // namespace gpunn::cpu
