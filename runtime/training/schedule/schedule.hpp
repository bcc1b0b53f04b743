#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "storage/checkpoint.hpp"
#include "training/schedule/kinds/schedule_rows.hpp"
#include "training/schedule/plateau.hpp"

namespace gpunn::training {

// The learning rate of every step of a training, for the device table that TABLE_LOAD reads. All of it is known from
// the start, but what reduce_on_plateau does: it changes the rest of the table between two epochs.
class Schedule {
 public:
  Schedule() = default;
  // Throws Error(usage) if the warm-up is longer than the training, or a rate is invalid.
  Schedule(const Experiment& experiment, int64_t steps_per_epoch, int64_t steps);

  const std::vector<float>& rates() const { return rates_; }
  // True if the rates of the steps after `epoch` have changed.
  bool epoch_ended(const EpochReport& epoch);

  // The state that is not a function of the step; and back, for the steps from `step` on.
  void save(storage::Checkpoint& checkpoint) const;
  void restore(const storage::Checkpoint& checkpoint, int64_t step);

  // Warnings, such as a milestone after the last step; a sentence each.
  std::vector<std::string> warnings() const;

  struct Mark {
    int64_t step = 0;  // counts from 0
    std::string what;
  };
  // The steps where the curve turns, between the first and the last.
  std::vector<Mark> marks() const;

 private:
  double tick_of(int64_t step) const;
  double rate_after_warmup(double tick) const;
  double rate_at(double tick) const;
  void fill(int64_t from);
  int64_t step_of(double tick) const;
  std::string length_text(double ticks) const;
  // The settings of reduce_on_plateau; nullptr for other schedules.
  const ReduceOnPlateau* reacting() const { return std::get_if<ReduceOnPlateau>(&curve_.config.kind); }
  int64_t first_drop(const ReduceOnPlateau& config) const;

  std::string file_;  // of the experiment, for messages
  const ScheduleRow* row_ = &schedule_rows().front();
  Curve curve_;
  Plateau plateau_;
  int64_t steps_per_tick_ = 1, steps_per_epoch_ = 1;
  std::vector<float> rates_;
};

}  // namespace gpunn::training
