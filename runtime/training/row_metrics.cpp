#include "training/row_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "training/session.hpp"
#include "training/targets.hpp"

namespace gpunn::training {

RowMetrics::RowMetrics(const tasks::Task& task, bool has_loss) : has_loss_(has_loss) {
  for (const tasks::TaskMetric& one : task.metrics()) {
    if (one.of_rows != nullptr) metrics_.emplace_back(one.metric.name, one.of_rows());
  }
}

void RowMetrics::add(const RowOutputs& rows, const Dataset& dataset) {
  count_non_finite(rows);
  if (metrics_.empty()) return;
  const RowsToScore scored(dataset, rows);
  for (const auto& [name, metric] : metrics_) metric->add(scored.rows());
}

void RowMetrics::count_non_finite(const RowOutputs& seen) {
  const std::size_t rows = seen.losses.size();
  for (std::size_t i = 0; i < rows; ++i) {
    const auto is_finite = [&](std::span<const float> values) {
      const std::size_t each = values.size() / rows;
      return std::ranges::all_of(values.subspan(i * each, each), [](float value) { return std::isfinite(value); });
    };
    const bool has_number = !has_loss_ || is_finite(seen.losses);
    if (has_number && is_finite(seen.scores) && is_finite(seen.predictions)) continue;
    if (!non_finite_)
      non_finite_ = NonFiniteRows{.rows = 0, .first = seen.first + static_cast<int64_t>(i), .cause = {}};
    ++non_finite_->rows;
  }
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
