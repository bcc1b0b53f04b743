// Smith and Topin, "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates", 2018. The
// last tick of a rise has the peak, the last of the training the end, as in PyTorch's OneCycleLR. The momentum stays as
// it is: it is a constant of the optimizer's op.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "optim/schedule/schedule_rows.hpp"

namespace gpunn::training {

namespace {

double annealed(Anneal anneal, double from, double to, double progress) {
  progress = std::clamp(progress, 0.0, 1.0);
  if (anneal == Anneal::linear) return from + (to - from) * progress;
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

double one_cycle_rate(const Curve& curve, double tick) {
  const auto& cycle = curve.as<OneCycleSchedule>();
  const double start = curve.base / cycle.div_factor;
  const double end = cycle.min_learning_rate > 0 ? cycle.min_learning_rate : start / cycle.final_div_factor;
  const double peak = cycle.pct_start * curve.length - 1;
  const double last = curve.length - 1;
  if (tick <= peak) return annealed(cycle.anneal, start, curve.base, peak > 0 ? tick / peak : 1);
  return annealed(cycle.anneal, curve.base, end, last > peak ? (tick - peak) / (last - peak) : 1);
}

}  // namespace

ScheduleRow one_cycle_schedule() {
  using namespace config;
  using C = OneCycleSchedule;
  return {.kind = schedule_kind<C>(
              "one_cycle",
              number("pct_start", &C::pct_start, between(0, 1), "The share of the training in which the rate rises."),
              number("div_factor", &C::div_factor, above_up_to(0, 1e12),
                     "The first rate is `optimizer.learning_rate` divided by this."),
              number("final_div_factor", &C::final_div_factor, above_up_to(0, 1e12),
                     "The last rate is the first one divided by this."),
              choice("anneal", &C::anneal, {"cosine", "linear"}, "The form of the rise and of the fall."),
              min_learning_rate_key<C>()),
          .rate = one_cycle_rate,
          .check = check_min_learning_rate<C>};
}

}  // namespace gpunn::training
