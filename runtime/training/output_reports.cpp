#include "training/output_reports.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "data/images/bicubic.hpp"
#include "fields/kind.hpp"
#include "training/detection_reports.hpp"
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
                          .name = i < dataset.fields.target().names.size() ? dataset.fields.target().names[i] : std::to_string(i),
                          .scores = Scores(std::move(scores))};
      if (dataset.fields.target().kind == "label_set") report.rows = rows_[i];
      reports.push_back(std::move(report));
    }
    return reports;
  }

 private:
  std::span<const tasks::TaskMetric> metrics_;
  std::vector<std::unique_ptr<tasks::RowMetric>> tallies_;
  std::vector<int64_t> rows_;  // that have the label
};

using Tallies = std::vector<std::unique_ptr<tasks::RowMetric>>;

Tallies tallies_of(std::span<const tasks::TaskMetric> metrics) {
  Tallies tallies;
  for (const tasks::TaskMetric& one : metrics) tallies.push_back(one.of_rows());
  return tallies;
}

Scores scores_of(std::span<const tasks::TaskMetric> metrics, const Tallies& tallies) {
  std::vector<Score> scores;
  for (std::size_t i = 0; i < metrics.size(); ++i) scores.push_back({metrics[i].metric, tallies[i]->value()});
  return Scores(std::move(scores));
}

ImageReport image_report(const std::string& name, const tasks::ScoredRows& row, Scores scores) {
  const tasks::ScoredImages& images = *row.images;
  const Shape &input = images.input_shape, &target = images.target_shape;
  data::Planes bicubic{input[0], input[1], input[2], {images.inputs.begin(), images.inputs.end()}};
  if (input != target) bicubic = data::resize_bicubic(bicubic, static_cast<double>(images.scale));
  return {.name = name,
          .channels = target[0],
          .height = target[1],
          .width = target[2],
          .bicubic = data::to_bytes(bicubic.values),
          .enlarged = data::to_bytes(row.predictions),
          .original = data::to_bytes(row.targets),
          .scores = std::move(scores)};
}

// Image by image, and the means of the figures.
ClassEvalReport evaluate_images(Session& session, int64_t most) {
  const Dataset& data = session.dataset();
  const std::span<const tasks::TaskMetric> metrics = session.task().output_metrics();
  ClassEvalReport report;
  const Tallies all = tallies_of(metrics);
  report.total = session.evaluate_rows([&](const RowOutputs& rows) {
    const RowsToScore scored(data, rows);
    const Tallies one = tallies_of(metrics);
    for (const Tallies* tallies : {&one, &all}) {
      for (const auto& tally : *tallies) tally->add(scored.rows());
    }
    const std::string& name = data.test.singles[static_cast<std::size_t>(rows.first)].name;
    report.outputs.push_back({.index = rows.first, .name = name, .scores = scores_of(metrics, one)});
    if (rows.first < most) report.images.push_back(image_report(name, scored.rows(), scores_of(metrics, one)));
  });
  report.total.scores = scores_of(metrics, all);
  report.targets = data.fields.target().kind;
  report.output = session.task().output();
  return report;
}

}  // namespace

ClassEvalReport evaluate_outputs(Session& session, int64_t worst) {
  if (session.data().evaluates_singly()) return evaluate_images(session, worst);
  if (session.dataset().fields.target().kind == "boxes") return evaluate_detections(session, worst);
  const Dataset& data = session.dataset();
  const tasks::Task& task = session.task();
  const auto outputs = static_cast<std::size_t>(data.fields.target().count());
  ClassEvalReport report;
  OutputTally tally(task);
  WorstRows worst_rows(worst);
  report.total = session.evaluate_rows([&](const RowOutputs& rows) {
    const RowsToScore scored(data, rows);
    tally.add(scored.rows());
    const auto add_worst = [&](const auto& values, const auto& predicted, const auto& text) {
      for (std::size_t i = 0; i < rows.losses.size(); ++i) {
        worst_rows.add(rows.first + static_cast<int64_t>(i), rows.losses[i], [&](RowReport row) {
          row.target = text(std::span(values).subspan(i * outputs, outputs));
          row.prediction = text(std::span(predicted).subspan(i * outputs, outputs));
          return row;
        });
      }
    };
    if (!fields::kind_of(data.fields.target()).is_scaled()) {
      return add_worst(scored.rows().targets, rows.predictions,
                       [&](std::span<const float> row) { return task.row_text(row, data.fields.target().names); });
    }
    const std::vector<double> targets = target_numbers(data.test, rows.first, static_cast<int64_t>(rows.losses.size()));
    const std::vector<double> predictions = in_data_units(rows.predictions, data.fields.target().mean, data.fields.target().stddev);
    add_worst(targets, predictions, [&](std::span<const double> row) {
      return tasks::numbers_text(row, data.fields.target().names, data.fields.target().stddev);
    });
    report.target_values.insert(report.target_values.end(), targets.begin(), targets.end());
    report.predicted_values.insert(report.predicted_values.end(), predictions.begin(), predictions.end());
  });
  report.targets = data.fields.target().kind;
  report.output = task.output();
  report.outputs = tally.reports(data);
  report.worst_rows = worst_rows.take();
  return report;
}

}  // namespace gpunn::training
