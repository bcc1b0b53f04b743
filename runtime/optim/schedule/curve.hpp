#pragma once

#include <gpunn/schedule_config.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace gpunn::training {

// A learning rate over a training, in ticks: a step or an epoch, whichever changes the rate.
struct Curve {
  ScheduleConfig config;
  double base = 0;    // optimizer.learning_rate
  double unit = 1;    // ticks of a length of 1 in the configuration
  double warmup = 0;  // ticks
  double length = 1;  // ticks after the warm-up, at least 1

  // The settings of the schedule's kind.
  template <class Kind>
  const Kind& as() const {
    return std::get<Kind>(config.kind);
  }
  double ticks(double configured) const;  // of a configured length; what is a whole number but for rounding is one
  // The same of a length that repeats, which is never 0.
  double period(double configured) const;
};

// The shortest length that repeats, in epochs or in ticks: a shorter one would be 0 but for rounding.
inline constexpr double kShortestPeriod = 1e-6;

// The nearest whole number where `ticks` is that but for rounding: 0.07 epochs of 100 steps are 7 of them.
double nearly_whole(double ticks);

// A place at which a rate turns, for charts of the schedule.
struct Turn {
  double tick = 0;   // after the warm-up
  std::string what;  // "drop", "restart"
};
inline constexpr std::size_t kMostTurns = 10'000;

// How long a training is, for warnings.
struct TrainingExtent {
  double ticks = 0;
  std::string text;  // "the training, 10 epochs"
  std::string rest;  // "the 8 epochs after the warm-up"
};

}  // namespace gpunn::training
