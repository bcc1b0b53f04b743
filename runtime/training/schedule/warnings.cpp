// A schedule that is longer than the training.
#include <algorithm>
#include <cmath>

#include "config/values.hpp"
#include "training/schedule/schedule.hpp"

namespace gpunn::training {

// "300 epochs", of the configuration's unit.
std::string Schedule::length_text(double ticks) const {
  const double value = ticks / curve_.unit;
  return config::number_text(value) + (curve_.config.per == SchedulePer::step ? " steps" : " epochs");
}

// The earliest step that a drop of reduce_on_plateau may come before: the first epoch that counts is an improvement.
int64_t Schedule::first_drop() const {
  const auto per_epoch = static_cast<double>(steps_per_epoch_);
  const auto counted = static_cast<int64_t>(std::max(std::ceil(curve_.warmup / per_epoch), 1.0));
  return (counted + curve_.config.patience + 1) * steps_per_epoch_;
}

void Schedule::warn_of_milestones(double all, const std::string& training, std::vector<std::string>& found) const {
  const std::vector<double>& milestones = curve_.config.milestones;
  const auto ticks = [&](double milestone) { return curve_.ticks(milestone); };
  const auto early = std::ranges::lower_bound(milestones, curve_.warmup, {}, ticks);
  if (const auto count = early - milestones.begin(); count > 0) {
    found.push_back("schedule.milestones: " + config::number_text(*(early - 1)) +
                    (count > 1 ? " and those before it are" : " is") +
                    " within the warm-up, which rises to the rate behind that drop");
  }
  const auto late = std::ranges::lower_bound(milestones, all, {}, ticks);
  if (const auto count = milestones.end() - late; count > 0) {
    found.push_back("schedule.milestones: " + config::number_text(*late) +
                    (count > 1 ? " and those after it are" : " is") + " behind the end of " + training +
                    ": no drop there");
  }
}

std::vector<std::string> Schedule::warnings() const {
  const ScheduleConfig& config = curve_.config;
  std::vector<std::string> found;
  const auto steps = static_cast<int64_t>(rates_.size());
  const double all = tick_of(steps - 1) + 1;
  const std::string training = "the training, " + length_text(all);
  if (curve_.warmup >= all) {
    found.push_back("the learning rate's warm-up takes the whole training, " + std::to_string(steps) +
                    " steps: optimizer.learning_rate is never reached");
    return found;
  }
  const auto rest = [&] {
    return "the " + length_text(curve_.length) + (curve_.warmup > 0 ? " after the warm-up" : " of the training");
  };
  switch (config.kind) {
    case ScheduleKind::step:
      if (curve_.ticks(config.step_size) >= curve_.length) {
        found.push_back("schedule.step_size (" + config::number_text(config.step_size) + ") is not less than " +
                        rest() + ": the learning rate never drops");
      }
      break;
    case ScheduleKind::multi_step:
      warn_of_milestones(all, training, found);
      break;
    case ScheduleKind::cosine:
      if (config.t_0 > 0 && curve_.ticks(config.t_0) > curve_.length) {
        found.push_back("schedule.t_0 (" + config::number_text(config.t_0) + ") is more than " + rest() +
                        ": the learning rate never comes to the end of its first curve");
      }
      break;
    case ScheduleKind::reduce_on_plateau:
      if (first_drop() >= steps) {
        found.push_back("schedule.patience (" + std::to_string(config.patience) + ") is too long for " + training +
                        ": the learning rate never drops");
      }
      break;
    case ScheduleKind::constant:
    case ScheduleKind::exponential:
    case ScheduleKind::one_cycle:
    case ScheduleKind::polynomial:
      break;
  }
  return found;
}

}  // namespace gpunn::training
