#pragma once

#include <gpunn/experiment.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gpunn::training {

// A learning rate over a training, in ticks: what the rate changes with, a step or an epoch.
struct Curve {
  ScheduleConfig config;
  double base = 0;    // optimizer.learning_rate
  double unit = 1;    // ticks of a length of 1 in the configuration
  double warmup = 0;  // ticks
  double length = 1;  // ticks after the warm-up, at least 1

  double ticks(double configured) const;  // of a configured length; what is a whole number but for rounding is one
};

// A place at which a rate turns, for whoever draws it.
struct Turn {
  double tick = 0;   // after the warm-up
  std::string what;  // "drop", "restart"
};
inline constexpr std::size_t kMostTurns = 10'000;

// The rate so many ticks after the warm-up, by the kind of its schedule. Each is PyTorch's of the name beside it
// (torch.optim.lr_scheduler, version 2.11), where there is one, called after each tick.
double step_rate(const Curve& curve, double tick);         // StepLR
double multi_step_rate(const Curve& curve, double tick);   // MultiStepLR; its milestones count the warm-up
double exponential_rate(const Curve& curve, double tick);  // ExponentialLR with gamma = exp(-k)
double cosine_rate(const Curve& curve, double tick);       // CosineAnnealingLR, CosineAnnealingWarmRestarts
double one_cycle_rate(const Curve& curve, double tick);    // OneCycleLR without its momentum
double polynomial_rate(const Curve& curve, double tick);   // PolynomialLR

std::vector<Turn> step_turns(const Curve& curve);
std::vector<Turn> multi_step_turns(const Curve& curve);
std::vector<Turn> cosine_turns(const Curve& curve);

}  // namespace gpunn::training
