// RELU, LEAKY_RELU, SIGMOID, TANH, GELU, SILU and their backwards.
#include "common/activation.hpp"

#include <gpunn/plugin.hpp>

#include "add_op.hpp"
#include "common/elementwise.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"
#include "simd/activation.hpp"

namespace gpunn::cpu {
namespace {

struct ForwardPlan {
  int64_t n = 0;
  ActivationKernels::Forward run = nullptr;
};

struct BackwardPlan {
  int64_t n = 0;
  ActivationKernels::Backward run = nullptr;
};

struct LeakyPlan {
  LeakyRelu op;
  const ActivationKernels* kernels = nullptr;
};

const ActivationKernels& simd_activation() { return GPUNN_SELECT_ISA(activation_kernels); }

template <ActivationKernels::Forward ActivationKernels::*function>
ForwardPlan plan_activation(const OpDesc& desc) {
  return {.n = map_size(desc, 1), .run = simd_activation().*function};
}

template <ActivationKernels::Backward ActivationKernels::*function>
BackwardPlan plan_activation_backward(const OpDesc& desc) {
  return {.n = map_size(desc, 2), .run = simd_activation().*function};
}

ForwardPlan plan_gelu(const OpDesc& desc) {
  const Gelu gelu = gelu_of(desc);
  return {.n = gelu.n, .run = gelu.tanh ? simd_activation().gelu_tanh : simd_activation().gelu_erf};
}

BackwardPlan plan_gelu_backward(const OpDesc& desc) {
  const Gelu gelu = gelu_backward_of(desc);
  return {.n = gelu.n, .run = gelu.tanh ? simd_activation().gelu_tanh_backward : simd_activation().gelu_erf_backward};
}

LeakyPlan plan_leaky_relu(const OpDesc& desc) { return {.op = leaky_relu_of(desc), .kernels = &simd_activation()}; }

LeakyPlan plan_leaky_relu_backward(const OpDesc& desc) {
  return {.op = leaky_relu_backward_of(desc), .kernels = &simd_activation()};
}

void run_forward(const ForwardPlan& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  parallel_ranges(plan.n, kGrain, [&](int64_t begin, int64_t end) { plan.run(x + begin, y + begin, end - begin); });
}

void run_backward(const BackwardPlan& plan, const OpArgs& args) {
  const auto *dy = args.in<float>(0), *v = args.in<float>(1);
  auto* dx = args.out<float>(0);
  parallel_ranges(plan.n, kGrain,
                  [&](int64_t begin, int64_t end) { plan.run(dy + begin, v + begin, dx + begin, end - begin); });
}

void run_leaky_relu(const LeakyPlan& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  auto* y = args.out<float>(0);
  parallel_ranges(plan.op.n, kGrain, [&](int64_t begin, int64_t end) {
    plan.kernels->leaky_relu(x + begin, plan.op.slope, y + begin, end - begin);
  });
}

void run_leaky_relu_backward(const LeakyPlan& plan, const OpArgs& args) {
  const auto *dy = args.in<float>(0), *x = args.in<float>(1);
  auto* dx = args.out<float>(0);
  parallel_ranges(plan.op.n, kGrain, [&](int64_t begin, int64_t end) {
    plan.kernels->leaky_relu_backward(dy + begin, x + begin, plan.op.slope, dx + begin, end - begin);
  });
}

}  // namespace

void add_activation_kernels(plugin::Device& device) {
  using K = ActivationKernels;
  add_op(device, GPUNN_OP_RELU, plan_activation<&K::relu>, run_forward);
  add_op(device, GPUNN_OP_RELU_BACKWARD, plan_activation_backward<&K::relu_backward>, run_backward);
  add_op(device, GPUNN_OP_LEAKY_RELU, plan_leaky_relu, run_leaky_relu);
  add_op(device, GPUNN_OP_LEAKY_RELU_BACKWARD, plan_leaky_relu_backward, run_leaky_relu_backward);
  add_op(device, GPUNN_OP_SIGMOID, plan_activation<&K::sigmoid>, run_forward);
  add_op(device, GPUNN_OP_SIGMOID_BACKWARD, plan_activation_backward<&K::sigmoid_backward>, run_backward);
  add_op(device, GPUNN_OP_TANH, plan_activation<&K::tanh>, run_forward);
  add_op(device, GPUNN_OP_TANH_BACKWARD, plan_activation_backward<&K::tanh_backward>, run_backward);
  add_op(device, GPUNN_OP_GELU, plan_gelu, run_forward);
  add_op(device, GPUNN_OP_GELU_BACKWARD, plan_gelu_backward, run_backward);
  add_op(device, GPUNN_OP_SILU, plan_activation<&K::silu>, run_forward);
  add_op(device, GPUNN_OP_SILU_BACKWARD, plan_activation_backward<&K::silu_backward>, run_backward);
}

}  // namespace gpunn::cpu
