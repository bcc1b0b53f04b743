#include "simd/arithmetic.hpp"

#include "simd/exp.hpp"

namespace gpunn::cpu {
namespace {

template <class Function>
void of_one(Operand x, float* y, int64_t n, Function f) {
  if (x.step == 0) {
    const float value = f(*x.x);
    for (int64_t i = 0; i < n; ++i) y[i] = value;
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = f(x.x[i]);
}

template <class Function>
void of_two(Operand a, Operand b, float* y, int64_t n, Function f) {
  if (b.step == 0) {
    const float right = *b.x;
    of_one(a, y, n, [=](float left) { return f(left, right); });
  } else if (a.step == 0) {
    const float left = *a.x;
    of_one(b, y, n, [=](float right) { return f(left, right); });
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(a.x[i], b.x[i]);
  }
}

void add(Operand a, Operand b, float* y, int64_t n) {
  of_two(a, b, y, n, [](float left, float right) { return left + right; });
}

void sub(Operand a, Operand b, float* y, int64_t n) {
  of_two(a, b, y, n, [](float left, float right) { return left - right; });
}

void mul(Operand a, Operand b, float* y, int64_t n) {
  of_two(a, b, y, n, [](float left, float right) { return left * right; });
}

void div(Operand a, Operand b, float* y, int64_t n) {
  of_two(a, b, y, n, [](float left, float right) { return left / right; });
}

// A NaN on the left stays by the first comparison, one on the right because the second fails.
void maximum(Operand a, Operand b, float* y, int64_t n) {
  of_two(a, b, y, n, [](float left, float right) { return left != left || left >= right ? left : right; });
}

void minimum(Operand a, Operand b, float* y, int64_t n) {
  of_two(a, b, y, n, [](float left, float right) { return left != left || left <= right ? left : right; });
}

void equal(Operand a, Operand b, float* y, int64_t n) {
  of_two(a, b, y, n, [](float left, float right) { return left == right ? 1.0F : 0.0F; });
}

void less(Operand a, Operand b, float* y, int64_t n) {
  of_two(a, b, y, n, [](float left, float right) { return left < right ? 1.0F : 0.0F; });
}

void less_equal(Operand a, Operand b, float* y, int64_t n) {
  of_two(a, b, y, n, [](float left, float right) { return left <= right ? 1.0F : 0.0F; });
}

void select(Operand condition, Operand a, Operand b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = condition.x[i * condition.step] != 0.0F ? a.x[i * a.step] : b.x[i * b.step];
  }
}

void copy(Operand x, float* y, int64_t n) {
  of_one(x, y, n, [](float value) { return value; });
}

void exp(Operand x, float* y, int64_t n) {
  of_one(x, y, n, [](float value) { return exp_f32(value); });
}

void sqrt(Operand x, float* y, int64_t n) {
  of_one(x, y, n, [](float value) { return __builtin_sqrtf(value); });
}

void rsqrt(Operand x, float* y, int64_t n) {
  of_one(x, y, n, [](float value) { return 1.0F / __builtin_sqrtf(value); });
}

}  // namespace

namespace GPUNN_ISA {
extern const ArithmeticKernels arithmetic_kernels;
const ArithmeticKernels arithmetic_kernels{add,  sub,        mul,    div,  maximum, minimum, equal,
                                           less, less_equal, select, copy, exp,     sqrt,    rsqrt};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
