#include "simd/batch.hpp"

namespace gpunn::cpu {
namespace {

void normalize_u8(const uint8_t* x, float scale, float shift, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<int32_t>(x[i])) * scale + shift;
}

void normalize_f32(const float* x, float scale, float shift, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale + shift;
}

}  // namespace

namespace GPUNN_ISA {
extern const BatchKernels batch_kernels;
const BatchKernels batch_kernels{normalize_u8, normalize_f32};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
