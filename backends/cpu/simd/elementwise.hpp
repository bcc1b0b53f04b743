// Element-wise ops over runs of numbers, by the formulas of gpunn/op_formulas.inc. An operand's step is 1, or 0
// if one number stands for all. y may share the memory of an operand whose step is 1.
#pragma once

#include <cstdint>

#include "isa.hpp"

namespace gpunn::cpu {

struct Operand {
  const float* x;
  int64_t step;
};

// `attrs` is the op's struct of attributes.
using Elementwise = void (*)(const void* attrs, const Operand* x, float* y, int64_t n);

struct ElementwiseOp {
  int32_t op;
  Elementwise run;
};

struct ElementwiseKernels {
  const ElementwiseOp* ops;  // up to one whose op is 0
};

GPUNN_DECLARE_ISA_VARIANTS(ElementwiseKernels, elementwise_kernels);

}  // namespace gpunn::cpu
