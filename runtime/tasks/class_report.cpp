#include "tasks/class_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "tasks/worst.hpp"

namespace gpunn::tasks {

namespace {

double quotient(int64_t of, int64_t by) { return by > 0 ? static_cast<double>(of) / static_cast<double>(by) : 0; }

class ClassRows : public Report {
 public:
  explicit ClassRows(const ReportInputs& inputs)
      : tally_(inputs.dataset.fields.target().names), mistakes_(inputs.worst) {}

  void add(const EvaluatedRows& rows) override {
    const std::span<const std::byte> labels = rows.bytes_of(rows.target().name);
    for (std::size_t i = 0; i < rows.count(); ++i) {
      int32_t label = 0;
      std::memcpy(&label, labels.data() + i * sizeof(label), sizeof(label));
      const int64_t predicted = predicted_class(rows.row_scores(i));
      if (label < 0 || label >= rows.target().count()) continue;
      tally_.add(label, predicted);
      if (predicted < 0 || predicted == label) continue;
      mistakes_.add(rows.losses[i], [&] {
        const std::span<const float> probabilities = rows.prediction(i);
        return Mistake{.row = rows.first + static_cast<int64_t>(i),
                       .label = label,
                       .predicted = predicted,
                       .probability = probabilities[static_cast<std::size_t>(predicted)],
                       .label_probability = probabilities[static_cast<std::size_t>(label)],
                       .loss = rows.losses[i]};
      });
    }
  }

  void finish(const Accumulated& /*sums*/, ClassEvalReport& report) override {
    tally_.put_into(report);
    report.mistakes = mistakes_.take();
  }

 private:
  ClassTally tally_;
  Worst<Mistake> mistakes_;
};

}  // namespace

int64_t predicted_class(std::span<const float> outputs) {
  if (std::ranges::any_of(outputs, [](float value) { return std::isnan(value); })) return -1;
  return std::ranges::max_element(outputs) - outputs.begin();
}

ClassTally::ClassTally(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    classes_.push_back({.index = static_cast<int64_t>(classes_.size()), .name = name});
  }
  confusion_.names = names;
  const std::size_t classes = names.size();
  if (classes <= static_cast<std::size_t>(kMostConfusionClasses)) confusion_.counts.resize(classes * classes);
}

void ClassTally::add(int64_t label, int64_t predicted, int64_t rows) {
  const auto own = static_cast<std::size_t>(label), named = static_cast<std::size_t>(predicted);
  classes_[own].rows += rows;
  if (predicted < 0) return;
  classes_[named].predicted += rows;
  if (own == named) classes_[own].correct += rows;
  if (!confusion_.counts.empty()) confusion_.counts[own * classes_.size() + named] += rows;
}

void ClassTally::put_into(ClassEvalReport& report) const {
  report.classes = classes_;
  report.confusion = confusion_;
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
}

std::unique_ptr<Report> make_class_report(const ReportInputs& inputs) { return std::make_unique<ClassRows>(inputs); }

}  // namespace gpunn::tasks
