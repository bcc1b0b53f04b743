// Arithmetic with broadcasting, functions of one number, and activations without attributes: run by run of the
// innermost dimension. Which functions there are, the tables of simd/arithmetic.cpp say.
#include "simd/arithmetic.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <type_traits>

#include "add_op.hpp"
#include "common/broadcast.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

const ArithmeticKernels& simd_arithmetic() { return GPUNN_SELECT_ISA(arithmetic_kernels); }

// body(operands, y, n) on n elements, or stretch by stretch on copies in f32.
template <class T, class Body>
void run_piece(const T* const* x, const int64_t* step, int32_t operands, T* y, int64_t n, const Body& body) {
  Operand given[Broadcast::kMostOperands] = {};
  if constexpr (std::is_same_v<T, float>) {
    for (int32_t k = 0; k < operands; ++k) given[k] = {x[k], step[k]};
    body(given, y, n);
  } else {
    float wide[Broadcast::kMostOperands][kStretch], result[kStretch];
    for (int64_t first = 0; first < n; first += kStretch) {
      const int64_t count = std::min(kStretch, n - first);
      for (int32_t k = 0; k < operands; ++k) {
        widen(x[k] + first * step[k], step[k], wide[k], step[k] == 0 ? 1 : count);
        given[k] = {wide[k], step[k] == 0 ? 0 : 1};
      }
      body(given, result, count);
      narrow(result, y + first, count);
    }
  }
}

// body(operands, y, n) for each piece of a run.
template <class T, class Body>
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
    const T* x[Broadcast::kMostOperands] = {};
    int64_t step[Broadcast::kMostOperands] = {};
    for (int32_t k = 0; k < plan.operands; ++k) {
      step[k] = plan.stride[k][inner];
      x[k] = args.in<T>(static_cast<std::size_t>(k)) + offset[k] + first * step[k];
    }
    run_piece(x, step, plan.operands, args.out<T>(0) + run * size + first, n, body);
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

template <class T>
void run_unary(const FunctionPlan<Unary>& plan, const OpArgs& args) {
  for_runs<T>(plan.loops, args, [&](const Operand* x, float* y, int64_t n) { plan.run(x[0], y, n); });
}

template <class T>
void run_binary(const FunctionPlan<Binary>& plan, const OpArgs& args) {
  for_runs<T>(plan.loops, args, [&](const Operand* x, float* y, int64_t n) { plan.run(x[0], x[1], y, n); });
}

template <class T>
void run_select(const Broadcast& plan, const OpArgs& args) {
  const auto run = simd_arithmetic().select;
  for_runs<T>(plan, args, [run](const Operand* x, float* y, int64_t n) { run(x[0], x[1], x[2], y, n); });
}

}  // namespace

void add_arithmetic_kernels(plugin::Device& device) {
  const ArithmeticKernels& kernels = simd_arithmetic();
  for (const auto* one = kernels.of_one; one->op != 0; ++one) {
    serve(device, one->op, plan_function<&ArithmeticKernels::of_one>,
          each_floating([](auto x) { return run_unary<decltype(x)>; }), Dtypes::floating, Layouts::channels_last_too);
  }
  for (const auto* one = kernels.of_two; one->op != 0; ++one) {
    serve(device, one->op, plan_function<&ArithmeticKernels::of_two>,
          each_floating([](auto x) { return run_binary<decltype(x)>; }), Dtypes::floating, Layouts::channels_last_too);
  }
  serve(device, GPUNN_OP_SELECT, broadcast_of, each_floating([](auto x) { return run_select<decltype(x)>; }),
        Dtypes::floating, Layouts::channels_last_too);
}

}  // namespace gpunn::cpu
