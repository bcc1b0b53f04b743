// A schedule that is longer than the training.
#include <algorithm>
#include <cmath>

#include "config/values.hpp"
#include "session/schedule.hpp"

namespace gpunn::training {

// "300 epochs", of the configuration's unit.
std::string Schedule::length_text(double ticks) const {
  const double value = ticks / curve_.unit;
  return config::number_text(value) + (curve_.config.per == SchedulePer::step ? " steps" : " epochs");
}

// The earliest step that a drop of reduce_on_plateau may come before: the first epoch that counts is an improvement.
int64_t Schedule::first_drop(const ReduceOnPlateau& config) const {
  const auto per_epoch = static_cast<double>(length_.steps_per_epoch);
  const auto counted = static_cast<int64_t>(std::max(std::ceil(curve_.warmup / per_epoch), 1.0));
  return (counted + config.patience + 1) * length_.steps_per_epoch;
}

std::vector<std::string> Schedule::warnings() const {
  std::vector<std::string> found;
  const auto steps = static_cast<int64_t>(rates_.size());
  TrainingExtent training;
  training.ticks = tick_of(steps - 1) + 1;
  training.text = "the training, " + length_text(training.ticks);
  training.rest = "the " + length_text(curve_.length) + (curve_.warmup > 0 ? " after the warm-up" : " of the training");
  if (curve_.warmup >= training.ticks) {
    found.push_back(std::string(curve_.config.warmup_steps > 0 ? "schedule.warmup_steps" : "schedule.warmup_epochs") +
                    " takes the whole training, " + std::to_string(steps) +
                    " steps: optimizer.learning_rate is never reached");
    return found;
  }
  if (row_->warn != nullptr) row_->warn(curve_, training, found);
  if (const ReduceOnPlateau* config = reacting(); config != nullptr && first_drop(*config) >= steps) {
    found.push_back("schedule.patience (" + std::to_string(config->patience) + ") is too long for " + training.text +
                    ": the learning rate never drops");
  }
  return found;
}

}  // namespace gpunn::training
