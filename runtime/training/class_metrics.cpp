#include "training/class_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "training/model_info.hpp"
#include "training/non_finite_cause.hpp"
#include "training/output_reports.hpp"
#include "training/trained_model.hpp"

namespace gpunn::training {

namespace {

double quotient(int64_t of, int64_t by) { return by > 0 ? static_cast<double>(of) / static_cast<double>(by) : 0; }

void keep_worst(std::vector<Mistake>& mistakes, int64_t most) {
  const auto count = std::min(static_cast<std::size_t>(std::max<int64_t>(most, 0)), mistakes.size());
  std::ranges::partial_sort(
      mistakes, mistakes.begin() + static_cast<std::ptrdiff_t>(count),
      [](const Mistake& a, const Mistake& b) { return a.loss != b.loss ? a.loss > b.loss : a.row < b.row; });
  mistakes.resize(count);
}

}  // namespace

int64_t predicted_class(std::span<const float> outputs) {
  if (std::ranges::any_of(outputs, [](float value) { return std::isnan(value); })) return -1;
  return std::ranges::max_element(outputs) - outputs.begin();
}

ClassTally::ClassTally(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    counts_.classes.push_back({.index = static_cast<int64_t>(counts_.classes.size()), .name = name});
  }
  const std::size_t classes = names.size();
  if (classes <= static_cast<std::size_t>(kMostConfusionClasses)) counts_.confusion.assign(classes * classes, 0);
}

void ClassTally::add(int64_t label, int64_t predicted, int64_t rows) {
  const auto own = static_cast<std::size_t>(label), named = static_cast<std::size_t>(predicted);
  counts_.classes[own].rows += rows;
  if (predicted < 0) return;
  counts_.classes[named].predicted += rows;
  if (own == named) counts_.classes[own].correct += rows;
  if (!counts_.confusion.empty()) counts_.confusion[own * counts_.classes.size() + named] += rows;
}

ClassEvalReport ClassTally::report() const {
  ClassEvalReport report = counts_;
  DefinedMean precision, recall, f1;
  for (ClassReport& one : report.classes) {
    if (one.predicted + one.rows == 0) {
      one.precision = one.recall = one.f1 = kUndefined;
      continue;
    }
    one.precision = quotient(one.correct, one.predicted);
    one.recall = quotient(one.correct, one.rows);
    one.f1 = quotient(2 * one.correct, one.predicted + one.rows);
    precision.add(one.precision);
    recall.add(one.recall);
    f1.add(one.f1);
  }
  report.macro_precision = precision.value();
  report.macro_recall = recall.value();
  report.macro_f1 = f1.value();
  return report;
}

ClassEvalReport evaluate_classes(Session& session, int64_t mistakes) {
  if (!session.task().has_labels()) return evaluate_outputs(session, mistakes);
  const Dataset& data = session.dataset();
  const auto classes = static_cast<std::size_t>(data.fields.target().count());
  const std::vector<int32_t> labels = labels_of(data.test);
  ClassTally tally(data.fields.target().names);
  std::vector<Mistake> wrong;
  const EvalReport total = session.evaluate_rows([&](const RowOutputs& rows) {
    for (std::size_t i = 0; i < rows.losses.size(); ++i) {
      const int64_t row = rows.first + static_cast<int64_t>(i);
      const int64_t label = labels[static_cast<std::size_t>(row)];
      const int64_t predicted = predicted_class(rows.scores.subspan(i * classes, classes));
      if (label < 0 || label >= data.fields.target().count()) continue;
      tally.add(label, predicted);
      if (predicted < 0 || predicted == label || mistakes <= 0) continue;
      const std::span<const float> probabilities = rows.predictions.subspan(i * classes, classes);
      wrong.push_back({.row = row,
                       .label = label,
                       .predicted = predicted,
                       .probability = probabilities[static_cast<std::size_t>(predicted)],
                       .label_probability = probabilities[static_cast<std::size_t>(label)],
                       .loss = rows.losses[i]});
    }
  });
  keep_worst(wrong, mistakes);
  ClassEvalReport report = tally.report();
  report.total = total;
  report.output = session.task().output();
  report.mistakes = std::move(wrong);
  return report;
}

}  // namespace gpunn::training

namespace gpunn {

ClassEvalReport evaluate_classes(const TrainedModel& model, int64_t mistakes, TrainingListener* listener) {
  const std::unique_ptr<training::Session> session = training::open_trained(model, listener);
  ClassEvalReport report = training::evaluate_classes(*session, mistakes);
  auto& found = report.total.non_finite;
  if (found) {
    found->cause = training::non_finite_cause(model, *session);
  } else if (!session->has_loss()) {  // suppression finds nothing in scores that are NaN
    std::string cause = training::non_finite_weights(model);
    if (!cause.empty()) found = NonFiniteRows{.rows = report.total.rows, .first = 0, .cause = std::move(cause)};
  }
  return report;
}

}  // namespace gpunn
