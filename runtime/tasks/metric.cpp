#include "tasks/metric.hpp"

#include <algorithm>
#include <utility>

namespace gpunn::tasks {

MetricTallies::MetricTallies(std::span<const TaskMetric> metrics, Phase phase) {
  for (const TaskMetric& one : metrics) {
    if (phase == Phase::evaluation || one.while_training) tallies_.push_back({one, one.tally()});
  }
}

void MetricTallies::add(const EvaluatedRows& rows) {
  for (const One& one : tallies_) {
    if (one.metric.on_host) one.tally->add(rows);
  }
}

Scores MetricTallies::scores(const Accumulated& sums, int64_t outputs) const {
  std::vector<Score> scores;
  for (const One& one : tallies_) {
    const TaskMetric& metric = one.metric;
    const bool applies = metric.above_outputs == 0 || outputs > metric.above_outputs;
    scores.push_back({metric.metric, applies ? one.tally->value(sums) : kUndefined, applies});
  }
  return Scores(std::move(scores));
}

std::vector<OutputReport> MetricTallies::by_output(const Accumulated& sums, std::span<const std::string> names) const {
  std::vector<std::vector<Score>> scores(names.size());
  for (const One& one : tallies_) {
    const std::vector<double> values = one.tally->by_output(sums);
    for (std::size_t i = 0; i < values.size(); ++i) scores.at(i).push_back({one.metric.metric, values[i]});
  }
  std::vector<OutputReport> reports;
  for (std::size_t i = 0; i < names.size(); ++i) {
    reports.push_back({.index = static_cast<int64_t>(i), .name = names[i], .scores = Scores(std::move(scores[i]))});
  }
  return reports;
}

bool any_on_host(std::span<const TaskMetric> metrics) { return std::ranges::any_of(metrics, &TaskMetric::on_host); }

}  // namespace gpunn::tasks
