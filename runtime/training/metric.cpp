#include "training/metric.hpp"

#include <vector>

namespace gpunn::training {

namespace {

constexpr std::string_view kOfTraining = "train_";

}  // namespace

double value_of(std::string_view monitor, const EpochReport& epoch) {
  if (monitor == "loss") return epoch.evaluation.loss;
  if (!monitor.starts_with(kOfTraining)) return epoch.evaluation.scores.value(monitor);
  monitor.remove_prefix(kOfTraining.size());
  return monitor == "loss" ? epoch.train_loss : epoch.train_scores.value(monitor);
}

Scores scores_of(const tasks::Task& task, tasks::Phase phase, const tasks::Accumulated& sums, int64_t outputs) {
  std::vector<Score> scores;
  for (const tasks::TaskMetric& one : task.metrics()) {
    if (phase == tasks::Phase::training && !one.while_training) continue;
    const bool applies = one.above_outputs == 0 || outputs > one.above_outputs;
    const bool known = applies && one.of_sums != nullptr;
    scores.push_back({one.metric, known ? one.of_sums(sums) : kUndefined, applies});
  }
  return Scores(std::move(scores));
}

}  // namespace gpunn::training
