#include "session/schedule.hpp"

#include <algorithm>
#include <cmath>

#include "config/values.hpp"
#include "session/metric.hpp"

namespace gpunn::training {

Schedule::Schedule(const Experiment& experiment, const TrainingLength& length)
    : file_(experiment.file.string()), length_(length) {
  const ScheduleConfig& given = experiment.schedule;
  const auto per_epoch = static_cast<double>(length.steps_per_epoch);
  curve_.config = given;
  row_ = &config::row_of(schedule_rows(), given);
  curve_.base = experiment.optimizer.learning_rate;
  curve_.unit = given.per == SchedulePer::epoch_fraction ? per_epoch : 1;

  // The warm-up's keys name their own unit.
  const double epoch_ticks = given.per == SchedulePer::epoch ? 1 : per_epoch;
  const double all = curve_.ticks(given.length > 0 ? given.length : schedule_length(experiment, length));
  curve_.warmup = nearly_whole(given.warmup_epochs * epoch_ticks);
  if (given.warmup_steps > 0) curve_.warmup = std::max(tick_of(given.warmup_steps), 0.0);
  curve_.length = std::max(all - curve_.warmup, 1.0);
  if (curve_.warmup > static_cast<double>(experiment.epochs) * epoch_ticks) {
    throw Error(experiment.file.string() + ": schedule.warmup_steps (" + std::to_string(given.warmup_steps) +
                    ") is longer than the training, " + std::to_string(experiment.epochs) + " epochs of " +
                    std::to_string(length.steps_per_epoch) + " steps; give fewer, or more training.epochs",
                ExitCode::usage);
  }
  rates_.resize(static_cast<std::size_t>(std::max<int64_t>(length.steps, 1)));
  fill(0);
}

double schedule_length(const Experiment& experiment, const TrainingLength& length) {
  if (experiment.schedule.per == SchedulePer::step) return static_cast<double>(length.steps);
  const double epochs = static_cast<double>(length.steps + length.shift) / static_cast<double>(length.steps_per_epoch);
  return experiment.schedule.per == SchedulePer::epoch ? std::ceil(epochs) : epochs;
}

// Lengths in epochs follow the epochs that are counted, whatever lengths those before the session had.
double Schedule::tick_of(int64_t step) const {
  switch (curve_.config.per) {
    case SchedulePer::step:
      return static_cast<double>(step);
    case SchedulePer::epoch:
      return static_cast<double>(length_.epoch_of(step));
    default:
      return static_cast<double>(step + length_.shift);
  }
}

int64_t Schedule::step_of(double tick) const {
  const auto whole = static_cast<int64_t>(std::ceil(tick));
  if (curve_.config.per == SchedulePer::step) return whole;
  return (curve_.config.per == SchedulePer::epoch ? whole * length_.steps_per_epoch : whole) - length_.shift;
}

// After the end of the schedule its last rate stays.
double Schedule::rate_after_warmup(double tick) const {
  if (const ReduceOnPlateau* config = reacting()) return plateau_.rate(*config, curve_.base);
  return row_->rate(curve_, std::clamp(tick, 0.0, curve_.length));
}

double Schedule::warmup_done(int64_t step) const {
  return curve_.config.warmup_steps > 0 ? static_cast<double>(step) : tick_of(step);
}

double Schedule::warmup_length() const {
  return curve_.config.warmup_steps > 0 ? static_cast<double>(curve_.config.warmup_steps) : curve_.warmup;
}

// The warm-up is PyTorch's LinearLR with an end factor of 1, up to the first rate behind it.
double Schedule::rate_of(int64_t step) const {
  step = std::max(step, length_.first);
  const double done = warmup_done(step), length = warmup_length();
  if (done >= length) return rate_after_warmup(tick_of(step) - curve_.warmup);
  const double given = curve_.config.warmup_start_factor;
  const double start = given > 0 ? given : 1 / (length + 1);
  return rate_after_warmup(0) * (start + (1 - start) * done / length);
}

void Schedule::fill(int64_t from) {
  for (auto i = static_cast<std::size_t>(from); i < rates_.size(); ++i) {
    const double rate = rate_of(static_cast<int64_t>(i));
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
  const bool warming_up = warmup_done(epoch.global_step) < warmup_length();
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
