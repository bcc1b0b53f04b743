// Runs of arithmetic. An operand's step is 1, or 0 where one number stands for all. y may be the very memory of an
// operand whose step is 1.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct Operand {
  const float* x;
  int64_t step;
};

struct ArithmeticKernels {
  using Unary = void (*)(Operand x, float* y, int64_t n);
  using Binary = void (*)(Operand a, Operand b, float* y, int64_t n);
  Binary add, sub, mul, div, maximum, minimum, equal, less, less_equal;
  void (*select)(Operand condition, Operand a, Operand b, float* y, int64_t n);
  Unary copy, exp, sqrt, rsqrt;
};

GPUNN_DECLARE_ISA_VARIANTS(ArithmeticKernels, arithmetic_kernels);

}  // namespace gpunn::cpu
