// The formulas of element-wise ops and updates at one number, and the functions that they call.
#pragma once

#include <gpunn/op_attrs.hpp>

#include <cstdint>

namespace gpunn::cuda::formulas {

__device__ __forceinline__ float exp(float x) { return expf(x); }
__device__ __forceinline__ float log(float x) { return logf(x); }
__device__ __forceinline__ float sqrt(float x) { return sqrtf(x); }
__device__ __forceinline__ float rsqrt(float x) { return rsqrtf(x); }
__device__ __forceinline__ float erf(float x) { return erff(x); }
__device__ __forceinline__ float pow(float x, float y) { return powf(x, y); }
__device__ __forceinline__ float tanh(float x) { return tanhf(x); }
__device__ __forceinline__ float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }
__device__ __forceinline__ float normal(float x) { return normcdff(x); }
__device__ __forceinline__ float normal_density(float x) { return 0.3989422804F * expf(-0.5F * x * x); }
__device__ __forceinline__ float select(bool condition, float a, float b) { return condition ? a : b; }

#define GPUNN_FORMULA_INLINE __device__ __forceinline__
#include <gpunn/op_formulas.inc>

// 1 / (1 - beta^t) of the step that the counter `step` is at, t counted from 1. In f64, because 1 - beta^t loses every
// digit of f32 while t is small.
__device__ __forceinline__ float adam_correction(float beta, int64_t step) {
  return static_cast<float>(1.0 / (1.0 - ::pow(static_cast<double>(beta), static_cast<double>(step) + 1.0)));
}

// The weight decay of parameter i.
template <class Attrs>
__device__ __forceinline__ float decay_of(const Attrs& attrs, int64_t i) {
  return i < attrs.decayed ? attrs.weight_decay : 0.0F;
}

}  // namespace gpunn::cuda::formulas
