#include "simd/optimizer.hpp"

namespace gpunn::cpu {
namespace {

void sgd(const SgdStep& by, float* w, const float* g, float* velocity, int64_t n) {
  const SgdStep step = by;  // a copy can't alias the vectors
  if (step.momentum == 0.0F) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) w[i] -= step.lr * (g[i] + step.weight_decay * w[i]);
  } else if (step.nesterov) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float gradient = g[i] + step.weight_decay * w[i];
      const float speed = step.momentum * velocity[i] + gradient;
      velocity[i] = speed;
      w[i] -= step.lr * (gradient + step.momentum * speed);
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float speed = step.momentum * velocity[i] + (g[i] + step.weight_decay * w[i]);
      velocity[i] = speed;
      w[i] -= step.lr * speed;
    }
  }
}

void adam(const AdamStep& by, float* w, const float* g, float* m, float* v, int64_t n) {
  const AdamStep step = by;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float gradient = step.decoupled ? g[i] : g[i] + step.weight_decay * w[i];
    const float first = step.beta1 * m[i] + (1.0F - step.beta1) * gradient;
    const float second = step.beta2 * v[i] + (1.0F - step.beta2) * (gradient * gradient);
    m[i] = first;
    v[i] = second;
    w[i] = step.keep * w[i] -
           step.lr * (first * step.correction1) / (__builtin_sqrtf(second * step.correction2) + step.epsilon);
  }
}

void rmsprop(const RmspropStep& by, float* w, const float* g, float* square, float* velocity, int64_t n) {
  const RmspropStep step = by;
  if (step.momentum == 0.0F) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float gradient = g[i] + step.weight_decay * w[i];
      const float mean = step.alpha * square[i] + (1.0F - step.alpha) * (gradient * gradient);
      square[i] = mean;
      w[i] -= step.lr * (gradient / (__builtin_sqrtf(mean) + step.epsilon));
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float gradient = g[i] + step.weight_decay * w[i];
      const float mean = step.alpha * square[i] + (1.0F - step.alpha) * (gradient * gradient);
      square[i] = mean;
      const float speed = step.momentum * velocity[i] + gradient / (__builtin_sqrtf(mean) + step.epsilon);
      velocity[i] = speed;
      w[i] -= step.lr * speed;
    }
  }
}

void adagrad(const AdagradStep& by, float* w, const float* g, float* sum, int64_t n) {
  const AdagradStep step = by;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] + step.weight_decay * w[i];
    const float total = sum[i] + gradient * gradient;
    sum[i] = total;
    w[i] -= step.lr * (gradient / (__builtin_sqrtf(total) + step.epsilon));
  }
}

void lion(const LionStep& by, float* w, const float* g, float* m, int64_t n) {
  const LionStep step = by;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float mixed = step.beta1 * m[i] + (1.0F - step.beta1) * g[i];
    const float sign = mixed > 0.0F ? 1.0F : mixed < 0.0F ? -1.0F : mixed;  // of NaN, NaN
    w[i] = step.keep * w[i] - step.lr * sign;
    m[i] = step.beta2 * m[i] + (1.0F - step.beta2) * g[i];
  }
}

void lars(const SgdStep& by, float* w, const float* g, float* velocity, int64_t n) {
  const SgdStep step = by;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float speed = step.momentum * velocity[i] + step.lr * (g[i] + step.weight_decay * w[i]);
    velocity[i] = speed;
    w[i] -= speed;
  }
}

double layer_sum_of_squares(const float* x, int64_t n) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

void scale_and_add(float scale, float* x, float factor, const float* other, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] = scale * x[i] + factor * other[i];
}

DotProducts dots(const float* a, const float* x, const float* b, int64_t n) {
  double with_x = 0.0, with_b = 0.0;
#pragma omp simd reduction(+ : with_x, with_b)
  for (int64_t i = 0; i < n; ++i) {
    const auto factor = static_cast<double>(a[i]);
    with_x += factor * static_cast<double>(x[i]);
    with_b += factor * static_cast<double>(b[i]);
  }
  return {with_x, with_b};
}

}  // namespace

namespace GPUNN_ISA {
extern const OptimizerKernels optimizer_kernels;
const OptimizerKernels optimizer_kernels{sgd,           adam, rmsprop, adagrad, lion, lars, layer_sum_of_squares,
                                         scale_and_add, dots};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
