#include "simd/arithmetic.hpp"

#include <gpunn/ops.h>

#include "simd/formulas.hpp"
#include "simd/map.hpp"

namespace gpunn::cpu {
namespace {

// A backward is a function of dy and of x or y, as op_list.inc has it.
constexpr OpFunction<Unary> kOfOne[] = {
    {GPUNN_OP_EXPAND, of_one<[](float x) { return x; }>},
    {GPUNN_OP_EXP, of_one<exp_f32>},
    {GPUNN_OP_LOG, of_one<[](float x) { return __builtin_logf(x); }>},
    {GPUNN_OP_SQRT, of_one<[](float x) { return __builtin_sqrtf(x); }>},
    {GPUNN_OP_RSQRT, of_one<[](float x) { return 1.0F / __builtin_sqrtf(x); }>},
    {GPUNN_OP_ERF, of_one<[](float x) { return __builtin_erff(x); }>},
    {GPUNN_OP_RELU, of_one<[](float x) { return x < 0.0F ? 0.0F : x; }>},  // this way round a NaN stays
    {GPUNN_OP_SIGMOID, of_one<sigmoid>},
    {GPUNN_OP_TANH, of_one<tanh_f32>},
    {GPUNN_OP_SILU, of_one<[](float x) { return x * sigmoid(x); }>},
    {},
};

constexpr OpFunction<Binary> kOfTwo[] = {
    {GPUNN_OP_ADD, of_two<[](float a, float b) { return a + b; }>},
    {GPUNN_OP_SUB, of_two<[](float a, float b) { return a - b; }>},
    {GPUNN_OP_MUL, of_two<[](float a, float b) { return a * b; }>},
    {GPUNN_OP_DIV, of_two<[](float a, float b) { return a / b; }>},
    // A NaN in a stays by the first comparison, one in b because the second fails.
    {GPUNN_OP_MAXIMUM, of_two<[](float a, float b) { return a != a || a >= b ? a : b; }>},
    {GPUNN_OP_MINIMUM, of_two<[](float a, float b) { return a != a || a <= b ? a : b; }>},
    {GPUNN_OP_POW, of_two<[](float a, float b) { return __builtin_powf(a, b); }>},
    {GPUNN_OP_EQUAL, of_two<[](float a, float b) { return a == b ? 1.0F : 0.0F; }>},
    {GPUNN_OP_LESS, of_two<[](float a, float b) { return a < b ? 1.0F : 0.0F; }>},
    {GPUNN_OP_LESS_EQUAL, of_two<[](float a, float b) { return a <= b ? 1.0F : 0.0F; }>},
    {GPUNN_OP_RELU_BACKWARD, of_two<[](float dy, float y) { return 0.0F < y ? dy : 0.0F; }>},
    {GPUNN_OP_SIGMOID_BACKWARD, of_two<[](float dy, float y) { return dy * y * (1.0F - y); }>},
    {GPUNN_OP_TANH_BACKWARD, of_two<[](float dy, float y) { return dy * (1.0F - y * y); }>},
    {GPUNN_OP_SILU_BACKWARD, of_two<silu_backward>},
    {},
};

// Steps that the compiler knows let it use vectors.
template <int a_step, int b_step>
void select_steps(const float* condition, const float* a, const float* b, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float chosen = a[i * a_step];
    const float other = b[i * b_step];
    y[i] = condition[i] != 0.0F ? chosen : other;
  }
}

void select(Operand condition, Operand a, Operand b, float* y, int64_t n) {
  if (condition.step == 0) {
    const Operand chosen = *condition.x != 0.0F ? a : b;
    return map(chosen, y, n, [](float x) { return x; });
  }
  const auto run = a.step == 0 ? (b.step == 0 ? select_steps<0, 0> : select_steps<0, 1>)
                               : (b.step == 0 ? select_steps<1, 0> : select_steps<1, 1>);
  run(condition.x, a.x, b.x, y, n);
}

}  // namespace

namespace GPUNN_ISA {
extern const ArithmeticKernels arithmetic_kernels;
const ArithmeticKernels arithmetic_kernels{kOfOne, kOfTwo, select};
}  // namespace GPUNN_ISA

}  // namespace gpunn::cpu
