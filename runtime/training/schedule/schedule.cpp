#include "training/schedule/schedule.hpp"

#include <algorithm>
#include <cmath>

#include "training/metric.hpp"

namespace gpunn::training {

namespace {

// 0.07 epochs of 100 steps are 7 of them, whatever the product says.
double nearly_whole(double ticks) {
  const double whole = std::round(ticks);
  return std::abs(ticks - whole) <= 1e-9 * std::max(std::abs(whole), 1.0) ? whole : ticks;
}

}  // namespace

double Curve::ticks(double configured) const { return nearly_whole(configured * unit); }

Schedule::Schedule(const Experiment& experiment, int64_t steps_per_epoch, int64_t steps)
    : steps_per_epoch_(steps_per_epoch) {
  const ScheduleConfig& config = experiment.schedule;
  const bool by_epoch = config.per == SchedulePer::epoch;
  const auto per_epoch = static_cast<double>(steps_per_epoch);
  steps_per_tick_ = by_epoch ? steps_per_epoch : 1;
  curve_.config = config;
  curve_.base = experiment.optimizer.learning_rate;
  curve_.unit = config.per == SchedulePer::epoch_fraction ? per_epoch : 1;

  // The warm-up's keys name their own unit.
  const double epoch_ticks = by_epoch ? 1 : per_epoch;
  const double all = by_epoch ? std::ceil(static_cast<double>(steps) / per_epoch) : static_cast<double>(steps);
  curve_.warmup = config.warmup_steps > 0 ? static_cast<double>(config.warmup_steps)
                                          : nearly_whole(config.warmup_epochs * epoch_ticks);
  curve_.length = std::max(all - curve_.warmup, 1.0);
  if (curve_.warmup > static_cast<double>(experiment.epochs) * epoch_ticks) {
    throw Error(experiment.file.string() + ": schedule.warmup_steps (" + std::to_string(config.warmup_steps) +
                    ") is longer than the training, " + std::to_string(experiment.epochs) + " epochs of " +
                    std::to_string(steps_per_epoch) + " steps; give fewer, or more training.epochs",
                ExitCode::usage);
  }
  rates_.resize(static_cast<std::size_t>(std::max<int64_t>(steps, 1)));
  fill(0);
}

double Schedule::tick_of(int64_t step) const {
  const int64_t whole = step / steps_per_tick_;
  return static_cast<double>(whole);
}

int64_t Schedule::step_of(double tick) const { return static_cast<int64_t>(std::ceil(tick)) * steps_per_tick_; }

double Schedule::rate_after_warmup(double tick) const {
  switch (curve_.config.kind) {
    case ScheduleKind::constant:
      break;
    case ScheduleKind::step:
      return step_rate(curve_, tick);
    case ScheduleKind::multi_step:
      return multi_step_rate(curve_, tick);
    case ScheduleKind::exponential:
      return exponential_rate(curve_, tick);
    case ScheduleKind::cosine:
      return cosine_rate(curve_, tick);
    case ScheduleKind::one_cycle:
      return one_cycle_rate(curve_, tick);
    case ScheduleKind::polynomial:
      return polynomial_rate(curve_, tick);
    case ScheduleKind::reduce_on_plateau:
      return plateau_.rate(curve_.config, curve_.base);
  }
  return curve_.base;
}

// The warm-up is PyTorch's LinearLR with an end factor of 1, up to the first rate behind it.
double Schedule::rate_at(double tick) const {
  if (tick >= curve_.warmup) return rate_after_warmup(tick - curve_.warmup);
  const double given = curve_.config.warmup_start_factor;
  const double start = given > 0 ? given : 1 / (curve_.warmup + 1);
  return rate_after_warmup(0) * (start + (1 - start) * tick / curve_.warmup);
}

void Schedule::fill(int64_t from) {
  for (auto i = static_cast<std::size_t>(from); i < rates_.size(); ++i) {
    rates_[i] = static_cast<float>(rate_at(tick_of(static_cast<int64_t>(i))));
  }
}

bool Schedule::epoch_ended(const EpochReport& epoch) {
  const ScheduleConfig& config = curve_.config;
  const bool warming_up = tick_of(epoch.global_step) < curve_.warmup;
  if (config.kind != ScheduleKind::reduce_on_plateau || warming_up) return false;
  if (!plateau_.observe(config, curve_.base, value_of(config.monitor, epoch))) return false;
  fill(epoch.global_step);
  return true;
}

void Schedule::save(storage::Checkpoint& checkpoint) const {
  if (curve_.config.kind == ScheduleKind::reduce_on_plateau) plateau_.save(checkpoint);
}

void Schedule::restore(const storage::Checkpoint& checkpoint, int64_t step) {
  if (curve_.config.kind != ScheduleKind::reduce_on_plateau) return;
  plateau_ = Plateau::from(checkpoint);
  fill(step);
}

std::vector<Schedule::Mark> Schedule::marks() const {
  std::vector<Turn> turns;
  switch (curve_.config.kind) {
    case ScheduleKind::step:
      turns = step_turns(curve_);
      break;
    case ScheduleKind::multi_step:
      turns = multi_step_turns(curve_);
      break;
    case ScheduleKind::cosine:
      turns = cosine_turns(curve_);
      break;
    case ScheduleKind::constant:
    case ScheduleKind::exponential:
    case ScheduleKind::one_cycle:
    case ScheduleKind::polynomial:
    case ScheduleKind::reduce_on_plateau:
      break;
  }
  std::vector<Mark> marks;
  if (curve_.warmup > 0) marks.push_back({step_of(curve_.warmup), "warm-up done"});
  for (Turn& turn : turns) marks.push_back({step_of(turn.tick + curve_.warmup), std::move(turn.what)});
  std::erase_if(marks, [&](const Mark& mark) { return mark.step >= static_cast<int64_t>(rates_.size()); });
  return marks;
}

}  // namespace gpunn::training
