// Functions of one number and of two, over runs of them. An operand's step is 1, or 0 if one number stands for all. y
// may share the memory of an operand whose step is 1.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct Operand {
  const float* x;
  int64_t step;
};

using Unary = void (*)(Operand x, float* y, int64_t n);
using Binary = void (*)(Operand a, Operand b, float* y, int64_t n);

template <class Function>
struct OpFunction {
  int32_t op;
  Function run;
};

struct ArithmeticKernels {
  const OpFunction<Unary>* of_one;  // up to one whose op is 0
  const OpFunction<Binary>* of_two;
  void (*select)(Operand condition, Operand a, Operand b, float* y, int64_t n);
};

GPUNN_DECLARE_ISA_VARIANTS(ArithmeticKernels, arithmetic_kernels);

}  // namespace gpunn::cpu
