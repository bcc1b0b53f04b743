#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "optim/schedule/schedule_rows.hpp"
#include "session/plateau.hpp"
#include "session/training_length.hpp"
#include "storage/checkpoint.hpp"

namespace gpunn::training {

// The learning rate of every step of a training, for the device table that TABLE_LOAD reads. All of it is known from
// the start, but what reduce_on_plateau does: it changes the rest of the table between two epochs.
class Schedule {
 public:
  Schedule() = default;
  // Throws Error(usage) if the warm-up is longer than the training, or a rate is invalid.
  Schedule(const Experiment& experiment, const TrainingLength& length);

  const std::vector<float>& rates() const { return rates_; }
  double rate_of(int64_t step) const;  // of any step of the session, and of those after it
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
  // Of the warm-up, in the unit that its key has: steps done, or ticks.
  double warmup_done(int64_t step) const;
  double warmup_length() const;
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
  TrainingLength length_{.steps_per_epoch = 1};
  std::vector<float> rates_;
};

// The length of a training in the unit of schedule.length.
double schedule_length(const Experiment& experiment, const TrainingLength& length);

}  // namespace gpunn::training
