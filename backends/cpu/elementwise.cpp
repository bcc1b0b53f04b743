// SCALE, AXPBY, CLAMP and FILL. COPY, which takes strides, is in copy.cpp.
#include "simd/elementwise.hpp"

#include <gpunn/plugin.hpp>

#include "add_op.hpp"
#include "common/elementwise.hpp"
#include "copy.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

const ElementwiseKernels& simd_elementwise() { return GPUNN_SELECT_ISA(elementwise_kernels); }

void run_scale(const Scale& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) {
    simd_elementwise().scale(x + begin, plan.factor, y + begin, end - begin);
  });
}

void run_axpby(const Axpby& plan, const OpArgs& args) {
  const auto *a = args.in<float>(0), *b = args.in<float>(1);
  auto* y = args.out<float>(0);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) {
    simd_elementwise().axpby(plan.alpha, a + begin, plan.beta, b + begin, y + begin, end - begin);
  });
}

void run_clamp(const Clamp& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) {
    simd_elementwise().clamp(x + begin, plan.low, plan.high, y + begin, end - begin);
  });
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
  add_op(device, GPUNN_OP_SCALE, scale_of, run_scale);
  add_op(device, GPUNN_OP_AXPBY, axpby_of, run_axpby);
  add_op(device, GPUNN_OP_CLAMP, clamp_of, run_clamp);
  add_op(device, GPUNN_OP_FILL, fill_of, run_fill);
  add_op(device, GPUNN_OP_COPY, plan_copy, run_copy);
}

}  // namespace gpunn::cpu
