#include "training/schedule/schedule.hpp"

#include <algorithm>
#include <cmath>

#include "config/values.hpp"
#include "training/metric.hpp"

namespace gpunn::training {

Schedule::Schedule(const Experiment& experiment, int64_t steps_per_epoch, int64_t steps)
    : file_(experiment.file.string()), steps_per_epoch_(steps_per_epoch) {
  const ScheduleConfig& given = experiment.schedule;
  const bool by_epoch = given.per == SchedulePer::epoch;
  const auto per_epoch = static_cast<double>(steps_per_epoch);
  steps_per_tick_ = by_epoch ? steps_per_epoch : 1;
  curve_.config = given;
  row_ = &config::row_of(schedule_rows(), given);
  curve_.base = experiment.optimizer.learning_rate;
  curve_.unit = given.per == SchedulePer::epoch_fraction ? per_epoch : 1;

  // The warm-up's keys name their own unit.
  const double epoch_ticks = by_epoch ? 1 : per_epoch;
  const double all = by_epoch ? std::ceil(static_cast<double>(steps) / per_epoch) : static_cast<double>(steps);
  curve_.warmup = given.warmup_steps > 0 ? static_cast<double>(given.warmup_steps)
                                         : nearly_whole(given.warmup_epochs * epoch_ticks);
  curve_.length = std::max(all - curve_.warmup, 1.0);
  if (curve_.warmup > static_cast<double>(experiment.epochs) * epoch_ticks) {
    throw Error(experiment.file.string() + ": schedule.warmup_steps (" + std::to_string(given.warmup_steps) +
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
  if (const ReduceOnPlateau* config = reacting()) return plateau_.rate(*config, curve_.base);
  return row_->rate(curve_, tick);
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
    const double rate = rate_at(tick_of(static_cast<int64_t>(i)));
    if (!is_learning_rate(rate) && !(rate >= 0 && rate <= curve_.base)) {
      throw Error(file_ + ": schedule: the learning rate becomes " + config::number_text(rate) + " at step " +
                      std::to_string(i + 1) + " of " + std::to_string(rates_.size()) + "; expected at most " +
                      config::number_text(config::kLargestRate),
                  ExitCode::usage);
    }
    rates_[i] = static_cast<float>(rate);
  }
}

bool Schedule::epoch_ended(const EpochReport& epoch) {
  const ReduceOnPlateau* config = reacting();
  const bool warming_up = tick_of(epoch.global_step) < curve_.warmup;
  if (config == nullptr || warming_up) return false;
  if (!plateau_.observe(*config, curve_.base, value_of(config->monitor, epoch))) return false;
  fill(epoch.global_step);
  return true;
}

void Schedule::save(storage::Checkpoint& checkpoint) const {
  if (reacting() != nullptr) plateau_.save(checkpoint);
}

void Schedule::restore(const storage::Checkpoint& checkpoint, int64_t step) {
  if (reacting() == nullptr) return;
  plateau_ = Plateau::from(checkpoint);
  fill(step);
}

std::vector<Schedule::Mark> Schedule::marks() const {
  std::vector<Turn> turns;
  if (row_->turns != nullptr) turns = row_->turns(curve_);
  std::vector<Mark> marks;
  if (curve_.warmup > 0) marks.push_back({step_of(curve_.warmup), "warm-up done"});
  for (Turn& turn : turns) marks.push_back({step_of(turn.tick + curve_.warmup), std::move(turn.what)});
  std::erase_if(marks, [&](const Mark& mark) { return mark.step >= static_cast<int64_t>(rates_.size()); });
  return marks;
}

}  // namespace gpunn::training
