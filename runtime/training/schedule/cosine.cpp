// Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "training/schedule/curve.hpp"

namespace gpunn::training {

double cosine_rate(const Curve& curve, double tick) {
  double period = curve.length;
  if (curve.config.t_0 > 0) {
    period = curve.ticks(curve.config.t_0);
    const auto longer = static_cast<double>(curve.config.t_mult);
    if (curve.config.t_mult == 1) tick = std::fmod(tick, period);
    while (tick >= period) {
      tick -= period;
      period *= longer;
    }
  }
  const double least = curve.config.min_learning_rate;
  return least + (curve.base - least) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(tick / period, 1.0)));
}

std::vector<Turn> cosine_turns(const Curve& curve) {
  std::vector<Turn> turns;
  if (curve.config.t_0 <= 0) return turns;
  double period = curve.ticks(curve.config.t_0);
  for (double tick = period; tick < curve.length && turns.size() < kMostTurns; tick += period) {
    turns.push_back({tick, "restart"});
    period *= static_cast<double>(curve.config.t_mult);
  }
  return turns;
}

}  // namespace gpunn::training
