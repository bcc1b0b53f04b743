// SGD, ADAM (and AdamW) and RMSPROP over flat vectors in place: first the elements that decay, then the others.
#include "simd/optimizer.hpp"

#include <gpunn/plugin.hpp>

#include <cmath>

#include "add_op.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

template <class Attrs>
struct OptimizerPlan {
  Attrs attrs{};
  int64_t n = 0;
  const OptimizerKernels* kernels = nullptr;
};

// `vectors` are the inputs that are as long as w, `in_place` those of them that are also outputs, in order.
template <class Attrs>
OptimizerPlan<Attrs> plan_vectors(const OpDesc& desc, const Attrs& attrs, std::initializer_list<std::size_t> vectors,
                                  std::initializer_list<std::size_t> in_place) {
  const gpunn_tensor& w = desc.input(0);
  require_packed(w, GPUNN_F32, "w");
  require(w.rank == 1, "w must be [n]");
  for (const std::size_t i : vectors) {
    require_packed(desc.input(i), GPUNN_F32, "the gradient or a state");
    require_same_shape(desc.input(i), w, "w, the gradient and the states");
  }
  std::size_t output = 0;
  for (const std::size_t i : in_place) {
    require_packed(desc.output(output), GPUNN_F32, "an output");
    require_same_shape(desc.output(output), desc.input(i), "an output and its input");
    ++output;
  }
  require_scalar(desc.input(2), GPUNN_F32, "lr");
  require(std::isfinite(attrs.weight_decay), "weight_decay must be finite");
  require(attrs.decayed >= 0 && attrs.decayed <= w.dim[0], "decayed must be 0 to n");
  return {.attrs = attrs, .n = w.dim[0], .kernels = &GPUNN_SELECT_ISA(optimizer_kernels)};
}

// Calls body(begin, end, decays) over pieces whose elements all decay or all don't.
template <class Body>
void for_pieces(int64_t n, int64_t decayed, const Body& body) {
  parallel_ranges(n, kGrain, [&](int64_t begin, int64_t end) {
    const int64_t middle = std::clamp(decayed, begin, end);
    if (begin < middle) body(begin, middle, true);
    if (middle < end) body(middle, end, false);
  });
}

float* at(float* state, int64_t i) { return state == nullptr ? nullptr : state + i; }

using SgdPlan = OptimizerPlan<gpunn_sgd_attrs>;

SgdPlan plan_sgd(const OpDesc& desc) {
  const auto attrs = require_attrs<gpunn_sgd_attrs>(desc);
  require(std::isfinite(attrs.momentum) && attrs.momentum >= 0.0F, "momentum must be 0 or more");
  if (attrs.momentum == 0.0F) {
    require_tensors(desc, 3, 3, 1);
    return plan_vectors(desc, attrs, {1}, {0});
  }
  require_tensors(desc, 4, 4, 2);
  return plan_vectors(desc, attrs, {1, 3}, {0, 3});
}

void run_sgd(const SgdPlan& plan, const OpArgs& args) {
  auto* w = args.out<float>(0);
  const auto* g = args.in<float>(1);
  const float lr = *args.in<float>(2);
  auto* velocity = plan.attrs.momentum == 0.0F ? nullptr : args.out<float>(1);
  for_pieces(plan.n, plan.attrs.decayed, [&](int64_t begin, int64_t end, bool decays) {
    const SgdStep step{.lr = lr,
                       .momentum = plan.attrs.momentum,
                       .weight_decay = decays ? plan.attrs.weight_decay : 0.0F,
                       .nesterov = plan.attrs.nesterov != 0};
    plan.kernels->sgd(step, w + begin, g + begin, at(velocity, begin), end - begin);
  });
}

using AdamPlan = OptimizerPlan<gpunn_adam_attrs>;

AdamPlan plan_adam(const OpDesc& desc) {
  require_tensors(desc, 6, 6, 3);
  const auto attrs = require_attrs<gpunn_adam_attrs>(desc);
  require(attrs.beta1 >= 0.0F && attrs.beta1 < 1.0F, "beta1 must be 0 to below 1");
  require(attrs.beta2 >= 0.0F && attrs.beta2 < 1.0F, "beta2 must be 0 to below 1");
  require(std::isfinite(attrs.epsilon) && attrs.epsilon >= 0.0F, "epsilon must be 0 or more");
  require_scalar(desc.input(3), GPUNN_I64, "step");
  return plan_vectors(desc, attrs, {1, 4, 5}, {0, 4, 5});
}

void run_adam(const AdamPlan& plan, const OpArgs& args) {
  const gpunn_adam_attrs& attrs = plan.attrs;
  auto *w = args.out<float>(0), *m = args.out<float>(1), *v = args.out<float>(2);
  const auto* g = args.in<float>(1);
  const float lr = *args.in<float>(2);
  const auto t = static_cast<double>(*args.in<int64_t>(3)) + 1.0;
  const auto correction = [t](float beta) {
    return static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(beta), t)));
  };
  const AdamStep plain{.lr = lr,
                       .beta1 = attrs.beta1,
                       .beta2 = attrs.beta2,
                       .epsilon = attrs.epsilon,
                       .gradient_decay = 0.0F,
                       .keep = 1.0F,
                       .correction1 = correction(attrs.beta1),
                       .correction2 = correction(attrs.beta2)};
  AdamStep decaying = plain;
  if (attrs.decoupled != 0) {
    decaying.keep = 1.0F - lr * attrs.weight_decay;
  } else {
    decaying.gradient_decay = attrs.weight_decay;
  }
  for_pieces(plan.n, attrs.decayed, [&](int64_t begin, int64_t end, bool decays) {
    plan.kernels->adam(decays ? decaying : plain, w + begin, g + begin, m + begin, v + begin, end - begin);
  });
}

using RmspropPlan = OptimizerPlan<gpunn_rmsprop_attrs>;

RmspropPlan plan_rmsprop(const OpDesc& desc) {
  const auto attrs = require_attrs<gpunn_rmsprop_attrs>(desc);
  require(attrs.alpha >= 0.0F && attrs.alpha <= 1.0F, "alpha must be 0 to 1");
  require(std::isfinite(attrs.epsilon) && attrs.epsilon >= 0.0F, "epsilon must be 0 or more");
  require(std::isfinite(attrs.momentum) && attrs.momentum >= 0.0F, "momentum must be 0 or more");
  if (attrs.momentum == 0.0F) {
    require_tensors(desc, 4, 4, 2);
    return plan_vectors(desc, attrs, {1, 3}, {0, 3});
  }
  require_tensors(desc, 5, 5, 3);
  return plan_vectors(desc, attrs, {1, 3, 4}, {0, 3, 4});
}

void run_rmsprop(const RmspropPlan& plan, const OpArgs& args) {
  auto *w = args.out<float>(0), *square = args.out<float>(1);
  const auto* g = args.in<float>(1);
  const float lr = *args.in<float>(2);
  auto* velocity = plan.attrs.momentum == 0.0F ? nullptr : args.out<float>(2);
  for_pieces(plan.n, plan.attrs.decayed, [&](int64_t begin, int64_t end, bool decays) {
    const RmspropStep step{.lr = lr,
                           .alpha = plan.attrs.alpha,
                           .epsilon = plan.attrs.epsilon,
                           .momentum = plan.attrs.momentum,
                           .weight_decay = decays ? plan.attrs.weight_decay : 0.0F};
    plan.kernels->rmsprop(step, w + begin, g + begin, square + begin, at(velocity, begin), end - begin);
  });
}

}  // namespace

void add_optimizer_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SGD_UPDATE, plan_sgd, run_sgd);
  add_op(device, GPUNN_OP_ADAM_UPDATE, plan_adam, run_adam);
  add_op(device, GPUNN_OP_RMSPROP_UPDATE, plan_rmsprop, run_rmsprop);
}

}  // namespace gpunn::cpu
