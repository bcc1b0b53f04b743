#include "training/metric.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace gpunn::training {

namespace {

constexpr std::string_view kOfTraining = "train_";

double value_in(const Scores& scores, std::string_view name) {
  const Score* score = scores.find(name);
  if (score == nullptr) return std::numeric_limits<double>::quiet_NaN();
  // Of five classes or fewer each row is in the top five.
  const bool always_best = std::isnan(score->value) && score->metric.is_share;
  return always_best ? (score->metric.larger_is_better ? 1 : 0) : score->value;
}

}  // namespace

double value_of(std::string_view monitor, const EpochReport& epoch) {
  if (monitor == "loss") return epoch.evaluation.loss;
  if (!monitor.starts_with(kOfTraining)) return value_in(epoch.evaluation.scores, monitor);
  monitor.remove_prefix(kOfTraining.size());
  return monitor == "loss" ? epoch.train_loss : value_in(epoch.train_scores, monitor);
}

bool improves(std::string_view monitor, double value, double best, double min_delta) {
  return tasks::monitored(monitor).larger_is_better ? value > best + min_delta : value < best - min_delta;
}

Scores scores_of(const tasks::Task& task, Of which, const tasks::Totals& totals, int64_t outputs) {
  std::vector<Score> scores;
  for (const tasks::TaskMetric& one : task.metrics()) {
    if (which == Of::training && !one.while_training) continue;
    const bool known = one.of_totals != nullptr;
    scores.push_back({one.metric, known ? one.of_totals(totals, outputs) : std::numeric_limits<double>::quiet_NaN()});
  }
  return Scores(std::move(scores));
}

}  // namespace gpunn::training
