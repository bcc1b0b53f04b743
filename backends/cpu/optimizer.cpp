// SGD, ADAM (and AdamW) and RMSPROP over flat vectors in place: first the elements that decay, then the others.
#include "simd/optimizer.hpp"

#include <gpunn/plugin.hpp>

#include <cmath>

#include "add_op.hpp"
#include "common/optimizer.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

const OptimizerKernels& kernels() { return GPUNN_SELECT_ISA(optimizer_kernels); }

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

void run_sgd(const Sgd& plan, const OpArgs& args) {
  auto* w = args.out<float>(0);
  const auto* g = args.in<float>(1);
  const float lr = *args.in<float>(2);
  auto* velocity = plan.attrs.momentum == 0.0F ? nullptr : args.out<float>(1);
  for_pieces(plan.n, plan.attrs.decayed, [&](int64_t begin, int64_t end, bool decays) {
    const SgdStep step{.lr = lr,
                       .momentum = plan.attrs.momentum,
                       .weight_decay = decays ? plan.attrs.weight_decay : 0.0F,
                       .nesterov = plan.attrs.nesterov != 0};
    kernels().sgd(step, w + begin, g + begin, at(velocity, begin), end - begin);
  });
}

void run_adam(const Adam& plan, const OpArgs& args) {
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
    kernels().adam(decays ? decaying : plain, w + begin, g + begin, m + begin, v + begin, end - begin);
  });
}

void run_rmsprop(const Rmsprop& plan, const OpArgs& args) {
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
    kernels().rmsprop(step, w + begin, g + begin, square + begin, at(velocity, begin), end - begin);
  });
}

}  // namespace

void add_optimizer_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SGD_UPDATE, sgd_of, run_sgd);
  add_op(device, GPUNN_OP_ADAM_UPDATE, adam_of, run_adam);
  add_op(device, GPUNN_OP_RMSPROP_UPDATE, rmsprop_of, run_rmsprop);
}

}  // namespace gpunn::cpu
