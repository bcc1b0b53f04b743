#include "training/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gpunn::training {

namespace {

double half_cosine(double from, double to, double progress) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * std::clamp(progress, 0.0, 1.0)));
}

// One cycle (Smith and Topin, "Super-convergence", 2018), in cosine form: from a 25th of the peak up to it over the
// first 30 % of the steps, then down to a 10,000th of the start or the given end.
double one_cycle(double peak, double end, double progress) {
  constexpr double kRise = 0.3;
  const double start = peak / 25;
  if (progress < kRise) return half_cosine(start, peak, progress / kRise);
  return half_cosine(peak, end > 0 ? end : start / 1e4, (progress - kRise) / (1 - kRise));
}

}  // namespace

std::vector<float> learning_rates(const Experiment& experiment, int64_t steps_per_epoch, int64_t total_steps) {
  const ScheduleConfig& schedule = experiment.schedule;
  const double base = experiment.optimizer.learning_rate;
  const auto per_epoch = static_cast<double>(steps_per_epoch);
  const double warmup = schedule.warmup_epochs * per_epoch;
  const double rest = std::max(1.0, static_cast<double>(total_steps) - warmup);

  std::vector<float> table(static_cast<std::size_t>(std::max<int64_t>(total_steps, 1)));
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto step = static_cast<double>(i);
    double rate = base;
    if (step < warmup) {
      rate = base * (step + 1) / (warmup + 1);
    } else {
      const double since = step - warmup;
      switch (schedule.kind) {
        case ScheduleKind::constant:
          break;
        case ScheduleKind::step:
          rate = base * std::pow(schedule.gamma, std::floor(since / (schedule.step_epochs * per_epoch)));
          break;
        case ScheduleKind::exponential:
          rate = base * std::exp(-schedule.gamma * since / per_epoch);
          break;
        case ScheduleKind::cosine:
          rate = half_cosine(base, schedule.min_learning_rate, since / rest);
          break;
        case ScheduleKind::one_cycle:
          rate = one_cycle(base, schedule.min_learning_rate, since / rest);
          break;
      }
    }
    table[i] = static_cast<float>(rate);
  }
  return table;
}

}  // namespace gpunn::training
