// Terms are made a block at a time in a buffer that stays in the first-level cache, and then summed.
#include "simd/pointwise_loss.hpp"

#include "simd/lanes/exp.hpp"
#include "simd/lanes/sum.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kLossBlock = 2048;

inline float magnitude(float x) { return x < 0.0F ? -x : x; }

// terms(first, count, buffer) leaves the terms [first, first + count) in the buffer.
template <class Terms>
inline float sum_of_terms(int64_t n, const Terms& terms) {
  alignas(64) float buffer[kLossBlock];
  float total = 0.0F;
  for (int64_t first = 0; first < n; first += kLossBlock) {
    const int64_t count = n - first < kLossBlock ? n - first : kLossBlock;
    terms(first, count, buffer);
    total += sum_of(buffer, count);
  }
  return total;
}

float bce(const float* x, const float* target, int64_t n) {
  return sum_of_terms(n, [x, target](int64_t first, int64_t count, float* buffer) {
    const float* in = x + first;
    const float* aim = target + first;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) buffer[i] = exp_f32(-magnitude(in[i]));
    for (int64_t i = 0; i < count; ++i) buffer[i] = __builtin_log1pf(buffer[i]);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) buffer[i] += (in[i] < 0.0F ? 0.0F : in[i]) - in[i] * aim[i];
  });
}

// e^-|x| never overflows; of a negative x the sigmoid is e^x / (1 + e^x).
void bce_gradient(const float* x, const float* target, float factor, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float e = exp_f32(-magnitude(x[i]));
    const float sigmoid = (x[i] < 0.0F ? e : 1.0F) / (1.0F + e);
    dx[i] = factor * (sigmoid - target[i]);
  }
}

float huber(const float* x, const float* target, float delta, int64_t n) {
  return sum_of_terms(n, [x, target, delta](int64_t first, int64_t count, float* buffer) {
    const float* in = x + first;
    const float* aim = target + first;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const float d = magnitude(in[i] - aim[i]);
      buffer[i] = d <= delta ? 0.5F * d * d : delta * (d - 0.5F * delta);
    }
  });
}

void huber_gradient(const float* x, const float* target, float delta, float factor, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float d = x[i] - target[i];
    const float raised = d < -delta ? -delta : d;
    dx[i] = factor * (raised > delta ? delta : raised);
  }
}

// A NaN is not below 0, and stays.
float hinge(const float* x, float floor, int32_t power, int64_t n) {
  return sum_of_terms(n, [x, floor, power](int64_t first, int64_t count, float* buffer) {
    const float* in = x + first;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const float above = in[i] - floor;
      const float term = power == 2 ? above * above : above;
      buffer[i] = above <= 0.0F ? 0.0F : term;
    }
  });
}

float hinge_gradient(const float* x, float floor, int32_t power, float factor, float* dx, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float above = x[i] - floor;
    const float slope = power == 2 ? 2.0F * above : 1.0F;
    dx[i] = above <= 0.0F ? 0.0F : factor * slope;
  }
  return sum_of(dx, n);
}

}  // namespace

namespace GPUNN_ISA {
extern const PointwiseLossKernels pointwise_loss_kernels;
const PointwiseLossKernels pointwise_loss_kernels{bce, bce_gradient, huber, huber_gradient, hinge, hinge_gradient};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
