#include "training/output_reports.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "training/targets.hpp"

namespace gpunn::training {

namespace {

// The rows with the largest loss so far, one that is not finite before all others.
class WorstRows {
 public:
  explicit WorstRows(int64_t most) : most_(static_cast<std::size_t>(std::max<int64_t>(most, 0))) {}
  template <class Describe>
  void add(int64_t row, double loss, const Describe& describe) {
    const RowReport candidate{.row = row, .loss = loss, .target = {}, .prediction = {}};
    const auto place = std::ranges::upper_bound(rows_, candidate, before);
    if (static_cast<std::size_t>(place - rows_.begin()) >= most_) return;
    rows_.insert(place, describe(candidate));
    if (rows_.size() > most_) rows_.pop_back();
  }
  std::vector<RowReport> take() { return std::move(rows_); }

 private:
  static bool before(const RowReport& a, const RowReport& b) {
    const auto rank = [](double loss) { return std::isnan(loss) ? HUGE_VAL : loss; };
    return rank(a.loss) > rank(b.loss);
  }

  std::size_t most_;
  std::vector<RowReport> rows_;
};

// Each metric of the task's outputs.
class OutputTally {
 public:
  explicit OutputTally(const tasks::Task& task) : metrics_(task.output_metrics()) {
    for (const tasks::TaskMetric& one : metrics_) tallies_.push_back(one.of_rows());
  }
  void add(const tasks::ScoredRows& rows) {
    for (const auto& tally : tallies_) tally->add(rows);
    rows_.resize(static_cast<std::size_t>(rows.outputs));
    for (std::size_t i = 0; i < rows.targets.size(); ++i) rows_[i % rows_.size()] += rows.targets[i] > 0.5F ? 1 : 0;
  }
  std::vector<OutputReport> reports(const Dataset& dataset) const {
    std::vector<std::vector<double>> values;
    for (const auto& tally : tallies_) values.push_back(tally->by_output());
    std::vector<OutputReport> reports;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      std::vector<Score> scores;
      for (std::size_t m = 0; m < values.size(); ++m) scores.push_back({metrics_[m].metric, values[m].at(i)});
      OutputReport report{.index = static_cast<int64_t>(i),
                          .name = i < dataset.class_names.size() ? dataset.class_names[i] : std::to_string(i),
                          .scores = Scores(std::move(scores))};
      if (dataset.targets == TargetKind::labels) report.rows = rows_[i];
      reports.push_back(std::move(report));
    }
    return reports;
  }

 private:
  std::span<const tasks::TaskMetric> metrics_;
  std::vector<std::unique_ptr<tasks::RowMetric>> tallies_;
  std::vector<int64_t> rows_;  // that have the label
};

}  // namespace

ClassEvalReport evaluate_outputs(Session& session, int64_t worst) {
  const Dataset& data = session.dataset();
  const tasks::Task& task = session.task();
  const auto outputs = static_cast<std::size_t>(data.classes);
  ClassEvalReport report;
  OutputTally tally(task);
  WorstRows worst_rows(worst);
  report.total = session.evaluate_rows([&](const RowOutputs& rows) {
    const std::vector<float> targets =
        targets_in_data_units(data, data.test, rows.first, static_cast<int64_t>(rows.losses.size()));
    tally.add({.outputs = data.classes, .predictions = rows.predictions, .targets = targets});
    for (std::size_t i = 0; i < rows.losses.size(); ++i) {
      worst_rows.add(rows.first + static_cast<int64_t>(i), rows.losses[i], [&](RowReport row) {
        row.target = task.row_text(std::span(targets).subspan(i * outputs, outputs), data.class_names);
        row.prediction = task.row_text(rows.predictions.subspan(i * outputs, outputs), data.class_names);
        return row;
      });
    }
    if (data.targets != TargetKind::numbers) return;
    report.target_values.insert(report.target_values.end(), targets.begin(), targets.end());
    report.predicted_values.insert(report.predicted_values.end(), rows.predictions.begin(), rows.predictions.end());
  });
  report.targets = data.targets;
  report.output = task.output();
  report.outputs = tally.reports(data);
  report.worst_rows = worst_rows.take();
  return report;
}

}  // namespace gpunn::training
