// Runs of bf16 numbers to f32 and back.
#pragma once

#include <gpunn/float_formats.hpp>

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct HalfKernels {
  void (*widen)(const BFloat16* x, float* y, int64_t n);
  // To the nearest, ties to even; a NaN stays one.
  void (*narrow)(const float* x, BFloat16* y, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(HalfKernels, half_kernels);

}  // namespace gpunn::cpu
