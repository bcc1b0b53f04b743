// Smith and Topin, "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates", 2018. The
// last tick of a rise has the peak, the last of the training the end, as in PyTorch. The momentum stays as it is: it is
// a constant of the optimizer's op.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "training/schedule/curve.hpp"

namespace gpunn::training {

namespace {

double between(Anneal anneal, double from, double to, double progress) {
  progress = std::clamp(progress, 0.0, 1.0);
  if (anneal == Anneal::linear) return from + (to - from) * progress;
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace

double one_cycle_rate(const Curve& curve, double tick) {
  const ScheduleConfig& config = curve.config;
  const double start = curve.base / config.div_factor;
  const double end = config.min_learning_rate > 0 ? config.min_learning_rate : start / config.final_div_factor;
  const double peak = config.pct_start * curve.length - 1;
  const double last = curve.length - 1;
  if (tick <= peak) return between(config.anneal, start, curve.base, peak > 0 ? tick / peak : 1);
  return between(config.anneal, curve.base, end, last > peak ? (tick - peak) / (last - peak) : 1);
}

}  // namespace gpunn::training
