// Functions of one number and of two as kernels over runs of them.
#pragma once

#include <cstdint>

#include "simd/arithmetic.hpp"

namespace gpunn::cpu {
namespace {

template <class Function>
void map(Operand x, float* y, int64_t n, Function f) {
  if (x.step == 0) {
    const float value = f(*x.x);
    for (int64_t i = 0; i < n; ++i) y[i] = value;
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = f(x.x[i]);
}

template <auto f>
void of_one(Operand x, float* y, int64_t n) {
  map(x, y, n, f);
}

template <auto f>
void of_two(Operand a, Operand b, float* y, int64_t n) {
  if (b.step == 0) {
    const float right = *b.x;
    map(a, y, n, [=](float left) { return f(left, right); });
  } else if (a.step == 0) {
    const float left = *a.x;
    map(b, y, n, [=](float right) { return f(left, right); });
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = f(a.x[i], b.x[i]);
  }
}

}  // namespace
}  // namespace gpunn::cpu
