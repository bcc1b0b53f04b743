#include "simd/loss.hpp"

#include "simd/lanes/sum.hpp"

namespace gpunn::cpu {
namespace {

float squared_distance(const float* x, const float* target, int64_t n) {
  // In blocks, so that long rows keep their accuracy.
  constexpr int64_t kBlock = 4096;
  float total = 0.0F;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t last = n - first < kBlock ? n : first + kBlock;
    float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = first; i < last; ++i) {
      const float difference = x[i] - target[i];
      sum += difference * difference;
    }
    total += sum;
  }
  return total;
}

void scaled_difference(const float* x, const float* target, float factor, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = factor * (x[i] - target[i]);
}

float log_likelihood(const float* target, const float* logp, int64_t n) {
  constexpr int64_t kBlock = 4096;
  float total = 0.0F;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t last = n - first < kBlock ? n : first + kBlock;
    float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = first; i < last; ++i) sum += target[i] == 0.0F ? 0.0F : target[i] * logp[i];
    total += sum;
  }
  return total;
}

void soft_gradient(const float* target, float factor, float* dx, int64_t n) {
  const float sum = sum_of(target, n);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = factor * (dx[i] * sum - target[i]);
}

}  // namespace

namespace GPUNN_ISA {
extern const LossKernels loss_kernels;
const LossKernels loss_kernels{squared_distance, scaled_difference, log_likelihood, soft_gradient};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
