// The section `schedule` of an experiment. Lengths and decay times are in epochs, or in steps with `per: step`.
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
  double step_size = 0;  // length between two drops
  double gamma = 0.1;    // factor of each drop
};

// `schedule.type: multi_step`
struct MultiStepSchedule {
  std::vector<double> milestones;  // positions of the drops, from the start of the training
  double gamma = 0.1;
};

// `schedule.type: exponential`
struct ExponentialSchedule {
  double k = 0.1;  // learning_rate * exp(-k t)
};

// `schedule.type: cosine`
struct CosineSchedule {
  double t_0 = 0;                // length up to the first restart; 0: none
  int64_t t_mult = 1;            // factor from each length to the next
  double min_learning_rate = 0;  // rate at the end of each curve
};

// `schedule.type: one_cycle`
struct OneCycleSchedule {
  double pct_start = 0.3;         // share of the training in which the rate rises
  double div_factor = 25;         // first rate: learning_rate / div_factor
  double final_div_factor = 1e4;  // last rate: first rate / final_div_factor
  Anneal anneal = Anneal::cosine;
  double min_learning_rate = 0;  // last rate; 0: given by final_div_factor
};

// `schedule.type: polynomial`
struct PolynomialSchedule {
  double power = 1;
  double min_learning_rate = 0;  // last rate
};

// `schedule.type: reduce_on_plateau`
struct ReduceOnPlateau {
  double min_learning_rate = 0;  // lowest rate
  std::string monitor = "loss";
  double factor = 0.1;
  int64_t patience = 10;    // epochs without an improvement before a drop
  double threshold = 1e-4;  // smallest improvement that counts
  ThresholdMode threshold_mode = ThresholdMode::relative;
  int64_t cooldown = 0;  // epochs after a drop that do not count
};

// The section `schedule` of an experiment.
struct ScheduleConfig {
  SchedulePer per = SchedulePer::epoch_fraction;  // how often the rate changes; epoch_fraction: at each step
  double length = 0;                              // of the whole schedule; 0: the training's
  double warmup_epochs = 0;                       // linear, before any schedule; give either this or
  int64_t warmup_steps = 0;
  double warmup_start_factor = 0;  // share of the first rate; 0: 1 / (length + 1), so that all rises are equal
  std::variant<ConstantSchedule, StepSchedule, MultiStepSchedule, ExponentialSchedule, CosineSchedule, OneCycleSchedule,
               PolynomialSchedule, ReduceOnPlateau>
      kind;
};

}  // namespace gpunn
