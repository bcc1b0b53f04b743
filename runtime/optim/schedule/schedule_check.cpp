#include "optim/schedule/schedule_check.hpp"

#include <cmath>

#include "config/values.hpp"
#include "optim/schedule/curve.hpp"

namespace gpunn::training {

using config::number_text;

void ScheduleCheck::add(const std::string& key, const std::string& message) {
  const std::string path = "schedule." + key;
  diagnostics_.add(given_.place(given_.has(path) ? path : "schedule.type"), message);
}

void ScheduleCheck::require_whole(const std::string& key, double length) {
  const SchedulePer per = experiment_.schedule.per;
  if (!sound("per") || per == SchedulePer::epoch_fraction || length == std::floor(length)) return;
  const std::string counted = per == SchedulePer::epoch ? "epoch" : "step";
  add(key, "schedule." + key + ": expected a whole number of " + counted + "s (schedule.per: " + counted + "), found " +
               number_text(length));
}

void ScheduleCheck::require_period(const std::string& key, double length) {
  if (!sound(key) || length >= kShortestPeriod) return;
  add(key, "schedule." + key + ": expected at least " + number_text(kShortestPeriod) + " " + unit() + ", found " +
               number_text(length));
}

void ScheduleCheck::require_at_most_base(double min_learning_rate) {
  const double base = experiment_.optimizer.learning_rate;
  if (!given_.sound("optimizer.learning_rate") || min_learning_rate <= base) return;
  add("min_learning_rate", "schedule.min_learning_rate (" + number_text(min_learning_rate) +
                               ") must be at most optimizer.learning_rate (" + number_text(base) + ")");
}

std::string ScheduleCheck::unit() const { return experiment_.schedule.per == SchedulePer::step ? "steps" : "epochs"; }

}  // namespace gpunn::training
