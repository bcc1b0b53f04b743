#include "session/plateau.hpp"

#include <algorithm>
#include <cmath>

#include "tasks/task.hpp"

namespace gpunn::training {

namespace {

// A smaller drop is left out.
constexpr double kSmallestDrop = 1e-8;

constexpr int64_t kMostEpochs = 1'000'000;  // that a count may say

constexpr const char* kScale = "plateau_scale";
constexpr const char* kBest = "plateau_best";  // absent before the first epoch
constexpr const char* kStale = "plateau_stale_epochs";
constexpr const char* kCooldown = "plateau_cooldown_epochs";

}  // namespace

bool Plateau::improves(const ReduceOnPlateau& config, double value) const {
  const Metric& metric = tasks::monitored(config.monitor);
  const double best = best_.value_or(kUndefined);
  if (config.threshold_mode == ThresholdMode::absolute) return is_better(metric, value, best, config.threshold);
  // A share of the size of the best value. PyTorch has a share of the value itself: below 0, it takes a value that is a
  // little worse for an improvement.
  const double share = std::copysign(config.threshold, best);
  return is_better(metric, value, best * (metric.larger_is_better ? 1 + share : 1 - share));
}

bool Plateau::observe(const ReduceOnPlateau& config, double base, double value) {
  if (!is_defined(value)) return false;  // such an epoch is neither an improvement nor a stale one
  if (improves(config, value)) {
    best_ = value;
    stale_ = 0;
  } else {
    ++stale_;
  }
  if (cooldown_ > 0) {
    --cooldown_;
    stale_ = 0;
  }
  if (stale_ <= config.patience) return false;
  cooldown_ = config.cooldown;
  stale_ = 0;
  const double before = rate(config, base);
  const double after = std::max(before * config.factor, config.min_learning_rate);
  if (before - after <= kSmallestDrop) return false;
  scale_ = after / base;
  return true;
}

double Plateau::rate(const ReduceOnPlateau& config, double base) const {
  return std::max(base * scale_, config.min_learning_rate);
}

void Plateau::save(storage::Checkpoint& checkpoint) const {
  checkpoint.metrics[kScale] = scale_;
  if (best_) checkpoint.metrics[kBest] = *best_;
  checkpoint.counters[kStale] = stale_;
  checkpoint.counters[kCooldown] = cooldown_;
}

Plateau Plateau::from(const storage::Checkpoint& checkpoint) {
  const auto metric = [&](const char* name) {
    const auto found = checkpoint.metrics.find(name);
    return found == checkpoint.metrics.end() ? std::optional<double>() : found->second;
  };
  const auto counter = [&](const char* name) {
    const auto found = checkpoint.counters.find(name);
    return found == checkpoint.counters.end() ? int64_t{0} : std::clamp<int64_t>(found->second, 0, kMostEpochs);
  };
  Plateau plateau;
  const double scale = metric(kScale).value_or(1);
  if (scale > 0 && scale < 1) plateau.scale_ = scale;
  plateau.best_ = metric(kBest);
  plateau.stale_ = counter(kStale);
  plateau.cooldown_ = counter(kCooldown);
  return plateau;
}

}  // namespace gpunn::training
