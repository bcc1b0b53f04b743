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
  // Throws Error(usage) where the warm-up is longer than the epochs of the training, or a rate is none.
  Schedule(const Experiment& experiment, int64_t steps_per_epoch, int64_t steps);

  const std::vector<float>& rates() const { return rates_; }
  // True where the rates of the steps after `epoch` are others now.
  bool epoch_ended(const EpochReport& epoch);

  // What is not a function of the step; and back, for the steps from `step` on.
  void save(storage::Checkpoint& checkpoint) const;
  void restore(const storage::Checkpoint& checkpoint, int64_t step);

  // What the user may not have meant, as a milestone behind the last step; a sentence each.
  std::vector<std::string> warnings() const;

  struct Mark {
    int64_t step = 0;  // counts from 0
    std::string what;
  };
  // Where the curve turns, between the first step and the last.
  std::vector<Mark> marks() const;

 private:
  double tick_of(int64_t step) const;
  double rate_after_warmup(double tick) const;
  double rate_at(double tick) const;
  void fill(int64_t from);
  int64_t step_of(double tick) const;
  std::string length_text(double ticks) const;
  // Its settings where the schedule is reduce_on_plateau, else nullptr.
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
