// The section `schedule` of an experiment. Lengths, and the time that a decay goes by, are in epochs, or with
// `per: step` in steps.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace gpunn {

// How often the rate changes.
enum class SchedulePer { epoch_fraction, epoch, step };
// The form of a curve from one rate to another.
enum class Anneal { cosine, linear };
// Whether an improvement counts as a share of the metric or as a difference.
enum class ThresholdMode { relative, absolute };

// `schedule.type: constant`
struct ConstantSchedule {};

// `schedule.type: step`
struct StepSchedule {
  double step_size = 0;  // the length between two drops
  double gamma = 0.1;    // factor of a drop
};

// `schedule.type: multi_step`
struct MultiStepSchedule {
  std::vector<double> milestones;  // places of the drops, from the start of the training
  double gamma = 0.1;
};

// `schedule.type: exponential`
struct ExponentialSchedule {
  double k = 0.1;  // learning_rate * exp(-k t)
};

// `schedule.type: cosine`
struct CosineSchedule {
  double t_0 = 0;                // length up to the first restart; 0: none
  int64_t t_mult = 1;            // each length is so many times the one before
  double min_learning_rate = 0;  // the end of each curve
};

// `schedule.type: one_cycle`
struct OneCycleSchedule {
  double pct_start = 0.3;         // the share of the rise
  double div_factor = 25;         // starts from learning_rate / div_factor
  double final_div_factor = 1e4;  // ends in the start / final_div_factor
  Anneal anneal = Anneal::cosine;
  double min_learning_rate = 0;  // the end; 0: final_div_factor says
};

// `schedule.type: polynomial`
struct PolynomialSchedule {
  double power = 1;
  double min_learning_rate = 0;  // the end
};

// `schedule.type: reduce_on_plateau`
struct ReduceOnPlateau {
  double min_learning_rate = 0;  // the least that is left
  std::string monitor = "loss";
  double factor = 0.1;
  int64_t patience = 10;    // epochs without an improvement that are let pass
  double threshold = 1e-4;  // an improvement is more than this
  ThresholdMode threshold_mode = ThresholdMode::relative;
  int64_t cooldown = 0;  // epochs after a drop that are not counted
};

// The section `schedule` of an experiment.
struct ScheduleConfig {
  SchedulePer per = SchedulePer::epoch_fraction;  // how often the rate changes; epoch_fraction: with each step
  double warmup_epochs = 0;                       // linear, in front of any; or
  int64_t warmup_steps = 0;
  double warmup_start_factor = 0;  // of the first rate; 0: 1 / (length + 1), the first of equal rises from 0
  std::variant<ConstantSchedule, StepSchedule, MultiStepSchedule, ExponentialSchedule, CosineSchedule, OneCycleSchedule,
               PolynomialSchedule, ReduceOnPlateau>
      kind;
};

}  // namespace gpunn
