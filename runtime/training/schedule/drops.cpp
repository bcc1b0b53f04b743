// step and multi_step: a factor at each of some places.
#include <algorithm>
#include <cmath>

#include "training/schedule/curve.hpp"

namespace gpunn::training {

double step_rate(const Curve& curve, double tick) {
  const double drops = std::floor(tick / curve.ticks(curve.config.step_size));
  return curve.base * std::pow(curve.config.gamma, drops);
}

double multi_step_rate(const Curve& curve, double tick) {
  const auto& milestones = curve.config.milestones;
  const auto passed = std::ranges::upper_bound(milestones, tick, {},
                                               [&](double milestone) { return curve.ticks(milestone) - curve.warmup; });
  return curve.base * std::pow(curve.config.gamma, static_cast<double>(passed - milestones.begin()));
}

std::vector<Turn> step_turns(const Curve& curve) {
  std::vector<Turn> turns;
  const double size = curve.ticks(curve.config.step_size);
  for (double tick = size; tick < curve.length && turns.size() < kMostTurns; tick += size) {
    turns.push_back({tick, "drop"});
  }
  return turns;
}

std::vector<Turn> multi_step_turns(const Curve& curve) {
  std::vector<Turn> turns;
  for (const double milestone : curve.config.milestones) {
    const double tick = curve.ticks(milestone) - curve.warmup;
    if (tick > 0 && tick < curve.length && turns.size() < kMostTurns) turns.push_back({tick, "drop"});
  }
  return turns;
}

}  // namespace gpunn::training
