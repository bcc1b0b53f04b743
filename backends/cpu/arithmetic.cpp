// Arithmetic with broadcasting, and functions of one number: run by run of the innermost dimension.
#include "simd/arithmetic.hpp"

#include <gpunn/plugin.hpp>

#include <cmath>

#include "add_op.hpp"
#include "common/broadcast.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

const ArithmeticKernels& simd_arithmetic() { return GPUNN_SELECT_ISA(arithmetic_kernels); }

// body(operands, y, n) for each piece of a run.
template <class Body>
void for_runs(const Broadcast& plan, const OpArgs& args, const Body& body) {
  const int32_t inner = plan.rank - 1;
  const int64_t size = plan.inner();
  // From element `first` of run `run` on.
  const auto piece = [&](int64_t run, int64_t first, int64_t n) {
    int64_t offset[Broadcast::kMostOperands] = {};
    int64_t rest = run;
    for (int32_t i = inner - 1; i >= 0; --i) {
      for (int32_t k = 0; k < plan.operands; ++k) offset[k] += rest % plan.dim[i] * plan.stride[k][i];
      rest /= plan.dim[i];
    }
    Operand operands[Broadcast::kMostOperands] = {};
    for (int32_t k = 0; k < plan.operands; ++k) {
      const int64_t step = plan.stride[k][inner];
      operands[k] = {args.in<float>(static_cast<std::size_t>(k)) + offset[k] + first * step, step};
    }
    body(operands, args.out<float>(0) + run * size + first, n);
  };
  if (plan.runs() == 1) {
    parallel_ranges(size, kGrain, [&](int64_t begin, int64_t end) { piece(0, begin, end - begin); });
  } else {
    parallel_ranges(plan.runs(), rows_per_task(size), [&](int64_t begin, int64_t end) {
      for (int64_t run = begin; run < end; ++run) piece(run, 0, size);
    });
  }
}

template <ArithmeticKernels::Unary ArithmeticKernels::*function>
void run_unary(const Broadcast& plan, const OpArgs& args) {
  const auto run = simd_arithmetic().*function;
  for_runs(plan, args, [run](const Operand* x, float* y, int64_t n) { run(x[0], y, n); });
}

template <ArithmeticKernels::Binary ArithmeticKernels::*function>
void run_binary(const Broadcast& plan, const OpArgs& args) {
  const auto run = simd_arithmetic().*function;
  for_runs(plan, args, [run](const Operand* x, float* y, int64_t n) { run(x[0], x[1], y, n); });
}

void run_select(const Broadcast& plan, const OpArgs& args) {
  const auto run = simd_arithmetic().select;
  for_runs(plan, args, [run](const Operand* x, float* y, int64_t n) { run(x[0], x[1], x[2], y, n); });
}

// Functions that the C library has, and no vectors.
template <float (*function)(float)>
void run_function(const Broadcast& plan, const OpArgs& args) {
  for_runs(plan, args, [](const Operand* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = function(x[0].x[i * x[0].step]);
  });
}

void run_pow(const Broadcast& plan, const OpArgs& args) {
  for_runs(plan, args, [](const Operand* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::pow(x[0].x[i * x[0].step], x[1].x[i * x[1].step]);
  });
}

float log_f32(float x) { return std::log(x); }
float erf_f32(float x) { return std::erf(x); }

}  // namespace

void add_arithmetic_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_ADD, broadcast_of, run_binary<&ArithmeticKernels::add>);
  add_op(device, GPUNN_OP_SUB, broadcast_of, run_binary<&ArithmeticKernels::sub>);
  add_op(device, GPUNN_OP_MUL, broadcast_of, run_binary<&ArithmeticKernels::mul>);
  add_op(device, GPUNN_OP_DIV, broadcast_of, run_binary<&ArithmeticKernels::div>);
  add_op(device, GPUNN_OP_MAXIMUM, broadcast_of, run_binary<&ArithmeticKernels::maximum>);
  add_op(device, GPUNN_OP_MINIMUM, broadcast_of, run_binary<&ArithmeticKernels::minimum>);
  add_op(device, GPUNN_OP_EQUAL, broadcast_of, run_binary<&ArithmeticKernels::equal>);
  add_op(device, GPUNN_OP_LESS, broadcast_of, run_binary<&ArithmeticKernels::less>);
  add_op(device, GPUNN_OP_LESS_EQUAL, broadcast_of, run_binary<&ArithmeticKernels::less_equal>);
  add_op(device, GPUNN_OP_POW, broadcast_of, run_pow);
  add_op(device, GPUNN_OP_SELECT, broadcast_of, run_select);
  add_op(device, GPUNN_OP_EXPAND, broadcast_of, run_unary<&ArithmeticKernels::copy>);
  add_op(device, GPUNN_OP_EXP, broadcast_of, run_unary<&ArithmeticKernels::exp>);
  add_op(device, GPUNN_OP_SQRT, broadcast_of, run_unary<&ArithmeticKernels::sqrt>);
  add_op(device, GPUNN_OP_RSQRT, broadcast_of, run_unary<&ArithmeticKernels::rsqrt>);
  add_op(device, GPUNN_OP_LOG, broadcast_of, run_function<log_f32>);
  add_op(device, GPUNN_OP_ERF, broadcast_of, run_function<erf_f32>);
}

}  // namespace gpunn::cpu
