#include "tasks/output_report.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "tasks/worst.hpp"

namespace gpunn::tasks {

namespace {

class OutputRows : public Report {
 public:
  OutputRows(const ReportInputs& inputs, const ShownOutputs& shown)
      : shown_(shown),
        names_(inputs.dataset.fields.target().names),
        rows_(names_.size()),
        tallies_(shown.metrics),
        worst_(inputs.worst) {}

  void add(const EvaluatedRows& rows) override {
    tallies_.add(rows);
    const OutputNumbers numbers = shown_.numbers(rows);
    const std::vector<double>&targets = numbers.targets, &predictions = numbers.predictions;
    for (std::size_t i = 0; shown_.counts_rows && i < targets.size(); ++i) {
      rows_[i % rows_.size()] += targets[i] > 0 ? 1 : 0;
    }
    const auto text = [&](const std::vector<double>& all, std::size_t row) {
      return shown_.text(rows.target(), std::span(all).subspan(row * numbers.outputs, numbers.outputs));
    };
    for (std::size_t i = 0; i < rows.count(); ++i) {
      worst_.add(rows.losses[i], [&] {
        return RowReport{.row = rows.first + static_cast<int64_t>(i),
                         .loss = rows.losses[i],
                         .target = text(targets, i),
                         .prediction = text(predictions, i)};
      });
    }
    if (!shown_.keeps_values) return;
    targets_.insert(targets_.end(), targets.begin(), targets.end());
    predictions_.insert(predictions_.end(), predictions.begin(), predictions.end());
  }

  void finish(const Accumulated& sums, ClassEvalReport& report) override {
    report.outputs = tallies_.by_output(sums, names_);
    for (std::size_t i = 0; shown_.counts_rows && i < report.outputs.size(); ++i) report.outputs[i].rows = rows_[i];
    report.worst_rows = worst_.take();
    report.target_values = std::move(targets_);
    report.predicted_values = std::move(predictions_);
  }

 private:
  ShownOutputs shown_;
  std::vector<std::string> names_;
  std::vector<int64_t> rows_;
  MetricTallies tallies_;
  Worst<RowReport> worst_;
  std::vector<double> targets_, predictions_;
};

}  // namespace

std::unique_ptr<Report> make_output_report(const ReportInputs& inputs, const ShownOutputs& shown) {
  return std::make_unique<OutputRows>(inputs, shown);
}

}  // namespace gpunn::tasks
