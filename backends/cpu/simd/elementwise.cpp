#include "simd/elementwise.hpp"

#include <type_traits>

#include "simd/lanes/formulas.hpp"

namespace gpunn::cpu {
namespace {

// y = f(x). An operand that one number stands for becomes part of f.
template <class F>
void map(const F& f, Operand x, float* y, int64_t n) {
  if (x.step == 0) {
    const float value = f(*x.x);
    for (int64_t i = 0; i < n; ++i) y[i] = value;
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = f(x.x[i]);
}

template <class F>
void map(const F& f, Operand a, Operand b, float* y, int64_t n) {
  if (b.step == 0) return map([f, right = *b.x](float left) { return f(left, right); }, a, y, n);
  if (a.step == 0) return map([f, left = *a.x](float right) { return f(left, right); }, b, y, n);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = f(a.x[i], b.x[i]);
}

template <class F>
void map(const F& f, Operand a, Operand b, Operand c, float* y, int64_t n) {
  if (c.step == 0) return map([f, last = *c.x](float p, float q) { return f(p, q, last); }, a, b, y, n);
  if (b.step == 0) return map([f, middle = *b.x](float p, float q) { return f(p, middle, q); }, a, c, y, n);
  if (a.step == 0) return map([f, first = *a.x](float p, float q) { return f(first, p, q); }, b, c, y, n);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = f(a.x[i], b.x[i], c.x[i]);
}

template <class F>
void map_operands(const F& f, const Operand* x, float* y, int64_t n) {
  if constexpr (std::is_invocable_v<F, float>) {
    map(f, x[0], y, n);
  } else if constexpr (std::is_invocable_v<F, float, float>) {
    map(f, x[0], x[1], y, n);
  } else {
    map(f, x[0], x[1], x[2], y, n);
  }
}

template <int32_t op>
void run(const void* attrs, const Operand* x, float* y, int64_t n) {
  formulas::Formula<op> f;
  __builtin_memcpy(&f.attrs, attrs, sizeof(f.attrs));
  if constexpr (requires { f.attrs.tanh; }) {
    // A loop for either: one for both would compute both.
    if (f.attrs.tanh != 0) {
      f.attrs.tanh = 1;
      map_operands(f, x, y, n);
    } else {
      map_operands(f, x, y, n);
    }
  } else {
    map_operands(f, x, y, n);
  }
}

constexpr ElementwiseOp kOps[] = {
#define GPUNN_FORMULA(op, parameters, ...) {GPUNN_OP_##op, run<GPUNN_OP_##op>},
#define GPUNN_FORMULA_PART(name, parameters, ...)
#define GPUNN_UPDATE(op, parameters, ...)
#include <gpunn/op_formulas.inc>
#undef GPUNN_FORMULA
#undef GPUNN_FORMULA_PART
#undef GPUNN_UPDATE
    {},
};

}  // namespace

namespace GPUNN_ISA {
extern const ElementwiseKernels elementwise_kernels;
const ElementwiseKernels elementwise_kernels{kOps};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
