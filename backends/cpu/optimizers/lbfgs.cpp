// LBFGS_UPDATE: the two-loop recursion. A pass over the vectors changes the direction by one of the history's and at
// once multiplies it with the next one, so that a piece of it stays in the cache. The sums are those of pieces, which
// depend on the size alone, in their order.
#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "add_op.hpp"
#include "common/optimizer.hpp"
#include "kernels.hpp"
#include "simd/optimizer.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

const OptimizerKernels& simd_updates() { return GPUNN_SELECT_ISA(optimizer_kernels); }

struct LbfgsPlan : Lbfgs {
  uint64_t workspace_bytes = 0;

  int64_t tasks() const { return (n + kGrain - 1) / kGrain; }
};

LbfgsPlan plan_lbfgs(const OpDesc& desc) {
  LbfgsPlan plan{lbfgs_of(desc)};
  const auto numbers = static_cast<uint64_t>(2 * plan.tasks() + 2 * plan.pairs);
  plan.workspace_bytes = numbers * sizeof(double) + 2 * static_cast<uint64_t>(plan.n) * sizeof(float);
  return plan;
}

class LbfgsUpdate {
 public:
  LbfgsUpdate(const LbfgsPlan& plan, const OpArgs& args)
      : plan_(plan),
        w_(args.out<float>(0)),
        last_gradient_(args.out<float>(1)),
        last_step_(args.out<float>(2)),
        steps_(args.out<float>(3)),
        changes_(args.out<float>(4)),
        lr_(*args.in<float>(2)),
        step_(*args.in<int64_t>(3)),
        parts_(args.workspace<double>()),
        inverse_(parts_ + 2 * plan.tasks()),
        share_(inverse_ + plan.pairs),
        direction_(reinterpret_cast<float*>(share_ + plan.pairs)),
        gradient_(direction_ + plan.n) {
    const auto* g = args.in<float>(1);
    for_pieces([&](int64_t begin, int64_t end) {
      std::copy(g + begin, g + end, gradient_ + begin);
      const int64_t decayed = std::clamp(plan_.attrs.decayed, begin, end);
      if (plan_.attrs.weight_decay == 0.0F || decayed == begin) return;
      simd_updates().scale_and_add(1.0F, gradient_ + begin, plan_.attrs.weight_decay, w_ + begin, decayed - begin);
    });
  }

  void run() {
    const DotProducts start = sums([&](int64_t begin, int64_t end) {
      DotProducts sum;
      for (int64_t i = begin; i < end; ++i) {
        sum.with_x += static_cast<double>(std::fabs(gradient_[i]));
        sum.with_b += static_cast<double>(gradient_[i] - last_gradient_[i]) * static_cast<double>(last_step_[i]);
      }
      return sum;
    });
    if (!Lbfgs::is_finite(start.with_x)) return go_back();
    begin_with(Lbfgs::is_good(start.with_b));
    const double slope = find_direction();
    const double rate = static_cast<double>(lr_) * Lbfgs::rate(step_, start.with_x);
    for_pieces([&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        last_step_[i] = Lbfgs::falls(slope) ? static_cast<float>(rate) * direction_[i] : 0.0F;
        w_[i] += last_step_[i];
      }
    });
  }

 private:
  template <class Body>
  void for_pieces(const Body& body) {
    parallel_ranges(plan_.n, kGrain, body);
  }

  template <class Of>
  DotProducts sums(const Of& of_piece) {
    for_pieces([&](int64_t begin, int64_t end) {
      const DotProducts sum = of_piece(begin, end);
      parts_[2 * (begin / kGrain)] = sum.with_x;
      parts_[2 * (begin / kGrain) + 1] = sum.with_b;
    });
    DotProducts all;
    for (int64_t i = 0; i < plan_.tasks(); ++i) {
      all.with_x += parts_[2 * i];
      all.with_b += parts_[2 * i + 1];
    }
    return all;
  }

  // direction = scale * direction + factor * other; then a direction and a b.
  DotProducts pass(double scale, double factor, const float* other, const float* a, const float* b) {
    return sums([&](int64_t begin, int64_t end) {
      const int64_t count = end - begin;
      float* const x = direction_ + begin;
      simd_updates().scale_and_add(static_cast<float>(scale), x, static_cast<float>(factor), other + begin, count);
      return simd_updates().dots(a + begin, x, b + begin, count);
    });
  }

  void go_back() {
    for_pieces([&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        last_step_[i] *= 0.5F;
        w_[i] -= last_step_[i];
      }
    });
  }

  // The direction is at first minus the gradient. A new pair moves the others down.
  void begin_with(bool new_pair) {
    for_pieces([&](int64_t begin, int64_t end) {
      const auto bytes = static_cast<std::size_t>(end - begin) * sizeof(float);
      for (int64_t row = 0; new_pair && row + 1 < plan_.pairs; ++row) {
        std::memcpy(step(row) + begin, step(row + 1) + begin, bytes);
        std::memcpy(change(row) + begin, change(row + 1) + begin, bytes);
      }
      if (new_pair) std::memcpy(step(plan_.pairs - 1) + begin, last_step_ + begin, bytes);
      float* const newest = change(plan_.pairs - 1);
      for (int64_t i = begin; i < end; ++i) {
        if (new_pair) newest[i] = gradient_[i] - last_gradient_[i];
        last_gradient_[i] = gradient_[i];
        direction_[i] = -gradient_[i];
      }
    });
  }

  // Returns the product of gradient and direction.
  double find_direction() {
    const int64_t newest = plan_.pairs - 1;
    double newest_product = 0.0;
    DotProducts next = pass(1.0, 0.0, direction_, step(newest), change(newest));
    for (int64_t i = newest; i >= 0; --i) {
      if (i == newest) newest_product = next.with_b;
      inverse_[i] = Lbfgs::inverse(next.with_b);
      share_[i] = inverse_[i] * next.with_x;
      const bool last = i == 0;  // the scale is of the newest change
      next = pass(1.0, -share_[i], change(i), last ? change(newest) : step(i - 1), change(last ? newest : i - 1));
    }
    next = pass(Lbfgs::scale(newest_product, next.with_b), 0.0, direction_, change(0), change(0));
    for (int64_t i = 0; i <= newest; ++i) {
      const double factor = share_[i] - inverse_[i] * next.with_x;
      const float* const with = i == newest ? gradient_ : change(i + 1);
      next = pass(1.0, factor, step(i), with, with);
    }
    return next.with_x;
  }

  float* step(int64_t row) { return steps_ + row * plan_.n; }
  float* change(int64_t row) { return changes_ + row * plan_.n; }

  const LbfgsPlan& plan_;
  float *w_, *last_gradient_, *last_step_, *steps_, *changes_;
  float lr_;
  int64_t step_;
  double *parts_, *inverse_, *share_;
  float *direction_, *gradient_;
};

void run_lbfgs(const LbfgsPlan& plan, const OpArgs& args) { LbfgsUpdate(plan, args).run(); }

}  // namespace

void add_lbfgs_kernels(plugin::Device& device) { add_op(device, GPUNN_OP_LBFGS_UPDATE, plan_lbfgs, run_lbfgs); }

}  // namespace gpunn::cpu
