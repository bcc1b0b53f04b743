// Element-wise ops, with broadcasting: run by run of the innermost dimension. simd/elementwise.cpp has a function for
// each formula. And FILL; COPY, which takes strides, is in copy.cpp.
#include "simd/elementwise.hpp"

#include <gpunn/kernel.hpp>
#include <gpunn/op_attrs.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "add_op.hpp"
#include "common/broadcast.hpp"
#include "common/elementwise.hpp"
#include "copy.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr std::size_t kLargestAttrs = std::max({
#define GPUNN_FORMULA(op, parameters, ...) sizeof(plugin::OpAttrs<GPUNN_OP_##op>),
#define GPUNN_FORMULA_PART(name, parameters, ...)
#define GPUNN_UPDATE(op, parameters, ...)
#include <gpunn/op_formulas.inc>
#undef GPUNN_FORMULA
#undef GPUNN_FORMULA_PART
#undef GPUNN_UPDATE
});

struct ElementwisePlan {
  Broadcast loops;
  Elementwise run = nullptr;
  std::array<std::byte, kLargestAttrs> attrs = {};
};

ElementwisePlan plan_elementwise(const OpDesc& desc, Elementwise run) {
  ElementwisePlan plan{.loops = broadcast_of(desc), .run = run};
  const void* given = desc.raw().attrs;
  uint32_t size = 0;
  if (given != nullptr) std::memcpy(&size, given, sizeof(size));
  if (size > 0) std::memcpy(plan.attrs.data(), given, std::min<std::size_t>(size, kLargestAttrs));
  return plan;
}

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

template <class T>
void run_elementwise(const ElementwisePlan& plan, const OpArgs& args) {
  for_runs<T>(plan.loops, args, [&](const Operand* x, float* y, int64_t n) { plan.run(plan.attrs.data(), x, y, n); });
}

template <class T>
void fill(const Fill& plan, const OpArgs& args) {
  auto* y = args.out<T>(0);
  const T value = static_cast<T>(plan.value);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) { std::fill(y + begin, y + end, value); });
}

void run_fill(const Fill& plan, const OpArgs& args) {
  switch (plan.dtype) {
    case GPUNN_F32:
      return fill<float>(plan, args);
    case GPUNN_F64:
      return fill<double>(plan, args);
    case GPUNN_I32:
      return fill<int32_t>(plan, args);
    case GPUNN_I64:
      return fill<int64_t>(plan, args);
    default:
      return fill<uint8_t>(plan, args);
  }
}

}  // namespace

void add_elementwise_kernels(plugin::Device& device) {
  for (const ElementwiseOp* one = GPUNN_SELECT_ISA(elementwise_kernels).ops; one->op != 0; ++one) {
    serve(
        device, one->op, [run = one->run](const OpDesc& desc) { return plan_elementwise(desc, run); },
        each_floating([](auto x) { return run_elementwise<decltype(x)>; }), Dtypes::floating,
        Layouts::channels_last_too);
  }
  add_op(device, GPUNN_OP_FILL, fill_of, run_fill);
  add_op(device, GPUNN_OP_COPY, plan_copy, run_copy, Dtypes::floating);
}

}  // namespace gpunn::cpu
