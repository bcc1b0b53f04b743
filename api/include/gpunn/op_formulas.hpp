// The formulas of op_formulas.inc as function objects for float and double: Formula<GPUNN_OP_SILU>{}(x).
#pragma once

#include <gpunn/op_attrs.hpp>

#include <cmath>
#include <cstdint>

namespace gpunn::formulas {

using std::erf;
using std::exp;
using std::log;
using std::pow;
using std::sqrt;
using std::tanh;

// 1 / sqrt(x)
template <class real>
real rsqrt(real x) {
  return 1 / sqrt(x);
}

// 1 / (1 + exp(-x))
template <class real>
real sigmoid(real x) {
  return 1 / (1 + exp(-x));
}

// The normal distribution's function.
template <class real>
real normal(real x) {
  return (1 + erf(x * static_cast<real>(0.70710678118654752))) / 2;
}

// The normal distribution's density.
template <class real>
real normal_density(real x) {
  return static_cast<real>(0.39894228040143268) * exp(-x * x / 2);
}

// a where the condition holds, else b.
template <class real>
real select(bool condition, real a, real b) {
  return condition ? a : b;
}

#include <gpunn/op_formulas.inc>

}  // namespace gpunn::formulas
