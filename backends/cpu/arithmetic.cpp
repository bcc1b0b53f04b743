// Arithmetic with broadcasting, functions of one number, and activations without attributes: run by run of the
// innermost dimension. Which functions there are, the tables of simd/arithmetic.cpp say.
#include "simd/arithmetic.hpp"

#include <gpunn/kernel.hpp>

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

template <class Function>
struct FunctionPlan {
  Broadcast loops;
  Function run;
};

// Of the function that the table has for the op.
template <auto table>
auto plan_function(const OpDesc& desc) {
  const auto* entry = simd_arithmetic().*table;
  while (entry->op != desc.op()) ++entry;
  return FunctionPlan<decltype(entry->run)>{broadcast_of(desc), entry->run};
}

void run_unary(const FunctionPlan<Unary>& plan, const OpArgs& args) {
  for_runs(plan.loops, args, [&](const Operand* x, float* y, int64_t n) { plan.run(x[0], y, n); });
}

void run_binary(const FunctionPlan<Binary>& plan, const OpArgs& args) {
  for_runs(plan.loops, args, [&](const Operand* x, float* y, int64_t n) { plan.run(x[0], x[1], y, n); });
}

void run_select(const Broadcast& plan, const OpArgs& args) {
  const auto run = simd_arithmetic().select;
  for_runs(plan, args, [run](const Operand* x, float* y, int64_t n) { run(x[0], x[1], x[2], y, n); });
}

}  // namespace

void add_arithmetic_kernels(plugin::Device& device) {
  const ArithmeticKernels& kernels = simd_arithmetic();
  for (const auto* one = kernels.of_one; one->op != 0; ++one) {
    add_op(device, one->op, plan_function<&ArithmeticKernels::of_one>, run_unary);
  }
  for (const auto* one = kernels.of_two; one->op != 0; ++one) {
    add_op(device, one->op, plan_function<&ArithmeticKernels::of_two>, run_binary);
  }
  add_op(device, GPUNN_OP_SELECT, broadcast_of, run_select);
}

}  // namespace gpunn::cpu
