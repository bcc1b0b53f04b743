#pragma once

#include <gpunn/schedule_config.hpp>

#include <string>
#include <vector>

#include "config/key_builders.hpp"
#include "config/kinds.hpp"
#include "optim/schedule/curve.hpp"
#include "optim/schedule/schedule_check.hpp"

namespace gpunn::training {

// Everything about a type of schedule. A new one is a struct in gpunn/schedule_config.hpp, a file beside this one that
// fills a row, and a line in schedule_rows(). If PyTorch has the same (torch.optim.lr_scheduler, version 2.11), the
// rates are equal to those of a scheduler that is called after each tick.
struct ScheduleRow {
  config::KindOf<ScheduleConfig> kind;
  double (*rate)(const Curve& curve, double tick) = nullptr;  // so many ticks after the warm-up
  // nullptr: there are none.
  std::vector<Turn> (*turns)(const Curve& curve) = nullptr;
  void (*check)(ScheduleCheck& check) = nullptr;
  // Warnings about a schedule that is longer than the training, a sentence each.
  void (*warn)(const Curve& curve, const TrainingExtent& training, std::vector<std::string>& found) = nullptr;
  bool drops_by_factors = false;  // best drawn over a logarithmic axis
  bool reacts = false;            // to the training, epoch by epoch: `rate` is where nothing has happened yet
};

const std::vector<ScheduleRow>& schedule_rows();

// Neither infinite nor beyond what an optimizer takes.
bool is_learning_rate(double rate);

// The section's keys, and the mistakes in their values.
std::vector<config::KeyOf<ScheduleConfig>> schedule_keys();
void check_schedule(const Experiment& experiment, const config::GivenKeys& given, config::Diagnostics& diagnostics);

template <class Kind, class... Keys>
config::KindOf<ScheduleConfig> schedule_kind(const std::string& name, Keys... keys) {
  return config::make_kind<Kind, ScheduleConfig>(name, std::move(keys)...);
}

// Of the kinds whose rate falls to somewhere.
template <class Kind>
config::KeyOf<Kind> min_learning_rate_key() {
  return config::number(
      "min_learning_rate", &Kind::min_learning_rate, config::between(0, config::kLargestRate),
      "Rate at the end of the curve, or the lowest rate. `one_cycle`: 0: given by `final_div_factor`.");
}
template <class Kind>
void check_min_learning_rate(ScheduleCheck& check) {
  check.require_at_most_base(check.as<Kind>().min_learning_rate);
}

}  // namespace gpunn::training
