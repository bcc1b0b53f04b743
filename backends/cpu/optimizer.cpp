// SGD, ADAM (and AdamW), RMSPROP, ADAGRAD, LION and LARS over flat vectors in place: first the elements that decay,
// then the others.
#include "simd/optimizer.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "add_op.hpp"
#include "common/optimizer.hpp"
#include "grain.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

const OptimizerKernels& simd_optimizer() { return GPUNN_SELECT_ISA(optimizer_kernels); }

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
    simd_optimizer().sgd(step, w + begin, g + begin, at(velocity, begin), end - begin);
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
                       .decoupled = attrs.decoupled != 0,
                       .weight_decay = 0.0F,
                       .keep = 1.0F,
                       .correction1 = correction(attrs.beta1),
                       .correction2 = correction(attrs.beta2)};
  AdamStep decaying = plain;
  if (attrs.decoupled != 0) {
    decaying.keep = 1.0F - lr * attrs.weight_decay;
  } else {
    decaying.weight_decay = attrs.weight_decay;
  }
  for_pieces(plan.n, attrs.decayed, [&](int64_t begin, int64_t end, bool decays) {
    simd_optimizer().adam(decays ? decaying : plain, w + begin, g + begin, m + begin, v + begin, end - begin);
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
    simd_optimizer().rmsprop(step, w + begin, g + begin, square + begin, at(velocity, begin), end - begin);
  });
}

void run_adagrad(const Adagrad& plan, const OpArgs& args) {
  auto *w = args.out<float>(0), *sum = args.out<float>(1);
  const auto* g = args.in<float>(1);
  const float lr = *args.in<float>(2);
  for_pieces(plan.n, plan.attrs.decayed, [&](int64_t begin, int64_t end, bool decays) {
    const AdagradStep step{
        .lr = lr, .epsilon = plan.attrs.epsilon, .weight_decay = decays ? plan.attrs.weight_decay : 0.0F};
    simd_optimizer().adagrad(step, w + begin, g + begin, sum + begin, end - begin);
  });
}

void run_lion(const Lion& plan, const OpArgs& args) {
  auto *w = args.out<float>(0), *m = args.out<float>(1);
  const auto* g = args.in<float>(1);
  const float lr = *args.in<float>(2);
  for_pieces(plan.n, plan.attrs.decayed, [&](int64_t begin, int64_t end, bool decays) {
    const LionStep step{.lr = lr,
                        .beta1 = plan.attrs.beta1,
                        .beta2 = plan.attrs.beta2,
                        .keep = decays ? 1.0F - lr * plan.attrs.weight_decay : 1.0F};
    simd_optimizer().lion(step, w + begin, g + begin, m + begin, end - begin);
  });
}

struct LarsPlan : Lars {
  uint64_t workspace_bytes = 0;  // two sums of squares a task
};

LarsPlan plan_lars(const OpDesc& desc) {
  const Lars lars = lars_of(desc);
  return {lars, static_cast<uint64_t>(2 * ((lars.n + kGrain - 1) / kGrain)) * sizeof(double)};
}

// The sums of squares of w's and g's elements [begin, end), cut into tasks by their number alone.
std::pair<double, double> sums_of_squares(const float* w, const float* g, int64_t begin, int64_t end, double* partial) {
  const int64_t tasks = (end - begin + kGrain - 1) / kGrain;
  parallel_for(tasks, [&](int64_t task) {
    const int64_t from = begin + task * kGrain;
    const int64_t count = std::min(end - from, kGrain);
    partial[2 * task] = simd_optimizer().sum_of_squares(w + from, count);
    partial[2 * task + 1] = simd_optimizer().sum_of_squares(g + from, count);
  });
  std::pair<double, double> sums{0.0, 0.0};
  for (int64_t task = 0; task < tasks; ++task) {
    sums.first += partial[2 * task];
    sums.second += partial[2 * task + 1];
  }
  return sums;
}

// One part after the other: a large one occupies the whole team.
void run_lars(const LarsPlan& plan, const OpArgs& args) {
  const gpunn_lars_attrs& attrs = plan.attrs;
  auto *w = args.out<float>(0), *velocity = args.out<float>(1);
  const auto* g = args.in<float>(1);
  const float lr = *args.in<float>(2);
  const auto* offset = args.in<int64_t>(4);
  for (int64_t part = 0; part < plan.parts; ++part) {
    const int64_t begin = place_in(plan.n, offset[part]);
    const int64_t end = place_in(plan.n, offset[part + 1]);
    if (begin >= end) continue;
    float rate = lr;
    if (begin < attrs.decayed) {
      const auto [w_sum, g_sum] = sums_of_squares(w, g, begin, end, args.workspace<double>());
      const double w_norm = std::sqrt(w_sum), g_norm = std::sqrt(g_sum);
      if (w_norm != 0.0 && g_norm != 0.0) {
        const double decay = static_cast<double>(attrs.weight_decay) * w_norm;
        rate = static_cast<float>(static_cast<double>(lr) * static_cast<double>(attrs.trust) * w_norm /
                                  (g_norm + decay + static_cast<double>(attrs.epsilon)));
      }
    }
    for_pieces(end - begin, attrs.decayed - begin, [&](int64_t first, int64_t last, bool decays) {
      const SgdStep step{.lr = rate,
                         .momentum = attrs.momentum,
                         .weight_decay = decays ? attrs.weight_decay : 0.0F,
                         .nesterov = false};
      const int64_t at = begin + first;
      simd_optimizer().lars(step, w + at, g + at, velocity + at, last - first);
    });
  }
}

}  // namespace

void add_optimizer_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SGD_UPDATE, sgd_of, run_sgd);
  add_op(device, GPUNN_OP_ADAM_UPDATE, adam_of, run_adam);
  add_op(device, GPUNN_OP_RMSPROP_UPDATE, rmsprop_of, run_rmsprop);
  add_op(device, GPUNN_OP_ADAGRAD_UPDATE, adagrad_of, run_adagrad);
  add_op(device, GPUNN_OP_LION_UPDATE, lion_of, run_lion);
  add_op(device, GPUNN_OP_LARS_UPDATE, plan_lars, run_lars);
}

}  // namespace gpunn::cpu
