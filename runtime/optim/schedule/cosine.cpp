// Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017. PyTorch's CosineAnnealingLR and
// CosineAnnealingWarmRestarts.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "optim/schedule/schedule_rows.hpp"

namespace gpunn::training {

namespace {

double cosine_rate(const Curve& curve, double tick) {
  const auto& [t_0, t_mult, least] = curve.as<CosineSchedule>();
  double period = curve.length;
  if (t_0 > 0) {
    period = curve.period(t_0);
    if (t_mult == 1) tick = std::fmod(tick, period);
    while (tick >= period) {
      tick -= period;
      period *= static_cast<double>(t_mult);
    }
  }
  return least + (curve.base - least) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(tick / period, 1.0)));
}

std::vector<Turn> restarts(const Curve& curve) {
  const auto& cosine = curve.as<CosineSchedule>();
  std::vector<Turn> turns;
  if (cosine.t_0 <= 0) return turns;
  double period = curve.period(cosine.t_0);
  for (double tick = period; tick < curve.length && turns.size() < kMostTurns; tick += period) {
    turns.push_back({tick, "restart"});
    period *= static_cast<double>(cosine.t_mult);
  }
  return turns;
}

void check_cosine(ScheduleCheck& check) {
  const double t_0 = check.as<CosineSchedule>().t_0;
  if (t_0 > 0) check.require_period("t_0", t_0);
  check.require_whole("t_0", t_0);
  check_min_learning_rate<CosineSchedule>(check);
}

void warn_of_long_curve(const Curve& curve, const TrainingExtent& training, std::vector<std::string>& found) {
  const double t_0 = curve.as<CosineSchedule>().t_0;
  if (t_0 <= 0 || curve.ticks(t_0) <= curve.length) return;
  found.push_back("schedule.t_0 (" + config::number_text(t_0) + ") is more than " + training.rest +
                  ": the learning rate never comes to the end of its first curve");
}

}  // namespace

ScheduleRow cosine_schedule() {
  using namespace config;
  return {.kind = schedule_kind<CosineSchedule>(
              "cosine",
              number("t_0", &CosineSchedule::t_0, between(0, kMostSteps),
                     "The length up to the first restart; 0: none, one curve over the whole training."),
              integer("t_mult", &CosineSchedule::t_mult, between(1, 1000), "Factor from each length to the next."),
              min_learning_rate_key<CosineSchedule>()),
          .rate = cosine_rate,
          .turns = restarts,
          .check = check_cosine,
          .warn = warn_of_long_curve};
}

}  // namespace gpunn::training
