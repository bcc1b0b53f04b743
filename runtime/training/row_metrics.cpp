#include "training/row_metrics.hpp"

#include <algorithm>

#include "training/session.hpp"
#include "training/targets.hpp"

namespace gpunn::training {

RowMetrics::RowMetrics(const tasks::Task& task) {
  for (const tasks::TaskMetric& one : task.metrics()) {
    if (one.of_rows != nullptr) metrics_.emplace_back(one.metric.name, one.of_rows());
  }
}

void RowMetrics::add(const RowOutputs& rows, const Dataset& dataset) {
  if (metrics_.empty()) return;
  const RowsToScore scored(dataset, rows);
  for (const auto& [name, metric] : metrics_) metric->add(scored.rows());
}

Scores RowMetrics::put_into(const Scores& scores) const {
  std::vector<Score> result(scores.begin(), scores.end());
  for (Score& score : result) {
    for (const auto& [name, metric] : metrics_) {
      if (score.metric.name == name) score.value = metric->value();
    }
  }
  return Scores(std::move(result));
}

bool has_row_metrics(const tasks::Task& task) {
  return std::ranges::any_of(task.metrics(), [](const auto& metric) { return metric.of_rows != nullptr; });
}

}  // namespace gpunn::training
