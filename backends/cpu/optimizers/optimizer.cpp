// SGD, ADAM (and AdamW), RMSPROP, ADAGRAD, LION and LARS over flat vectors in place: first the elements that decay,
// then the others.
#include "simd/optimizer.hpp"

#include <gpunn/kernel.hpp>
#include <gpunn/op_formulas.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "add_op.hpp"
#include "common/optimizer.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

const OptimizerKernels& simd_optimizer() { return GPUNN_SELECT_ISA(optimizer_kernels); }

// Calls body(begin, end, decay) over pieces whose elements all decay or all don't. The first element is that of number
// `from` of the attributes.
template <class Attrs, class Body>
void for_pieces(int64_t n, const Attrs& attrs, const Body& body, int64_t from = 0) {
  parallel_ranges(n, kGrain, [&](int64_t begin, int64_t end) {
    const int64_t middle = std::clamp(attrs.decayed - from, begin, end);
    if (begin < middle) body(begin, middle, attrs.weight_decay);
    if (middle < end) body(middle, end, 0.0F);
  });
}

float* at(float* state, int64_t i) { return state == nullptr ? nullptr : state + i; }

void run_sgd(const Sgd& plan, const OpArgs& args) {
  auto* w = args.out<float>(0);
  const auto* g = args.in<float>(1);
  const float rate = *args.in<float>(2);
  auto* velocity = plan.attrs.momentum == 0.0F ? nullptr : args.out<float>(1);
  for_pieces(plan.n, plan.attrs, [&](int64_t begin, int64_t end, float decay) {
    simd_optimizer().sgd(plan.attrs, {.rate = rate, .decay = decay}, w + begin, g + begin, at(velocity, begin),
                         end - begin);
  });
}

void run_adam(const Adam& plan, const OpArgs& args) {
  auto *w = args.out<float>(0), *m = args.out<float>(1), *v = args.out<float>(2);
  const auto* g = args.in<float>(1);
  const float rate = *args.in<float>(2);
  const auto t = static_cast<double>(*args.in<int64_t>(3)) + 1.0;
  const auto correction = [t](float beta) {
    return static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(beta), t)));
  };
  const float correction1 = correction(plan.attrs.beta1), correction2 = correction(plan.attrs.beta2);
  for_pieces(plan.n, plan.attrs, [&](int64_t begin, int64_t end, float decay) {
    const UpdateNumbers by{.rate = rate,
                           .decay = decay,
                           .keep = plan.attrs.decoupled != 0 ? formulas::kept(rate, decay) : 1.0F,
                           .correction1 = correction1,
                           .correction2 = correction2};
    simd_optimizer().adam(plan.attrs, by, w + begin, g + begin, m + begin, v + begin, end - begin);
  });
}

void run_rmsprop(const Rmsprop& plan, const OpArgs& args) {
  auto *w = args.out<float>(0), *square = args.out<float>(1);
  const auto* g = args.in<float>(1);
  const float rate = *args.in<float>(2);
  auto* velocity = plan.attrs.momentum == 0.0F ? nullptr : args.out<float>(2);
  for_pieces(plan.n, plan.attrs, [&](int64_t begin, int64_t end, float decay) {
    simd_optimizer().rmsprop(plan.attrs, {.rate = rate, .decay = decay}, w + begin, g + begin, square + begin,
                             at(velocity, begin), end - begin);
  });
}

void run_adagrad(const Adagrad& plan, const OpArgs& args) {
  auto *w = args.out<float>(0), *sum = args.out<float>(1);
  const auto* g = args.in<float>(1);
  const float rate = *args.in<float>(2);
  for_pieces(plan.n, plan.attrs, [&](int64_t begin, int64_t end, float decay) {
    simd_optimizer().adagrad(plan.attrs, {.rate = rate, .decay = decay}, w + begin, g + begin, sum + begin,
                             end - begin);
  });
}

void run_lion(const Lion& plan, const OpArgs& args) {
  auto *w = args.out<float>(0), *m = args.out<float>(1);
  const auto* g = args.in<float>(1);
  const float rate = *args.in<float>(2);
  for_pieces(plan.n, plan.attrs, [&](int64_t begin, int64_t end, float decay) {
    simd_optimizer().lion(plan.attrs, {.rate = rate, .keep = formulas::kept(rate, decay)}, w + begin, g + begin,
                          m + begin, end - begin);
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
    for_pieces(
        end - begin, attrs,
        [&](int64_t first, int64_t last, float decay) {
          const int64_t at = begin + first;
          simd_optimizer().lars(attrs, {.rate = rate, .decay = decay}, w + at, g + at, velocity + at, last - first);
        },
        begin);
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
