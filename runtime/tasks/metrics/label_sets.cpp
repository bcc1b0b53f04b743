#include "tasks/metrics/label_sets.hpp"

#include <algorithm>
#include <functional>

namespace gpunn::tasks {

namespace {

// The sum over the distinct scores of a label, falling, of the rise of the recall times the precision there, as
// scikit-learn's average_precision_score has it. Undefined if no row has the label.
class AveragePrecision {
 public:
  void add(double score, double target) { rows_.push_back({score, target > kLabelThreshold}); }
  double value() const {
    const auto all = static_cast<double>(std::ranges::count(rows_, true, &Scored::has));
    if (all == 0) return kUndefined;
    std::vector<Scored> rows = rows_;
    std::ranges::sort(rows, std::greater<>(), &Scored::score);
    double sum = 0, hits = 0, hits_before = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      hits += rows[i].has ? 1 : 0;
      const bool last_of_equal = i + 1 == rows.size() || rows[i + 1].score != rows[i].score;
      if (!last_of_equal) continue;
      sum += (hits - hits_before) * hits / static_cast<double>(i + 1);
      hits_before = hits;
    }
    return sum / all;  // divided last: scores that separate the rows give 1, not a little more
  }

 private:
  struct Scored {
    double score = 0;
    bool has = false;
  };
  std::vector<Scored> rows_;
};

// Counts the rows that have a label, those that were predicted to, and those of both. A label that no row has is
// undefined in each figure, so that all means are over the same labels.
class LabelCounts {
 public:
  void add(double probability, double target) {
    const bool has = target > kLabelThreshold, predicted = probability >= kLabelThreshold;
    rows_ += has ? 1 : 0;
    predicted_ += predicted ? 1 : 0;
    both_ += has && predicted ? 1 : 0;
  }

 protected:
  double quotient(double of, double by) const {
    if (rows_ == 0) return kUndefined;
    return by > 0 ? of / by : 0;
  }
  double rows_ = 0, predicted_ = 0, both_ = 0;
};

struct Precision : LabelCounts {
  double value() const { return quotient(both_, predicted_); }
};
struct Recall : LabelCounts {
  double value() const { return quotient(both_, rows_); }
};
struct F1 : LabelCounts {
  double value() const { return quotient(2 * both_, rows_ + predicted_); }
};

// The share of the rows whose labels are all right.
class ExactMatch : public MetricTally {
 public:
  void add(const EvaluatedRows& rows) override {
    const OutputNumbers labels = label_numbers(rows);
    for (std::size_t first = 0; first < labels.targets.size(); first += labels.outputs) {
      bool same = true;
      for (std::size_t i = first; i < first + labels.outputs; ++i) {
        same = same && (labels.targets[i] > kLabelThreshold) == (labels.predictions[i] >= kLabelThreshold);
      }
      matches_ += same ? 1 : 0;
      rows_ += 1;
    }
  }
  double value(const Accumulated& /*sums*/) const override { return rows_ > 0 ? matches_ / rows_ : kUndefined; }

 private:
  double matches_ = 0, rows_ = 0;
};

template <class Output>
TaskMetric mean_of(const Metric& name) {
  return {.metric = name, .tally = make_tally<MeanOfOutputs<Output, label_numbers>>, .on_host = true};
}

}  // namespace

OutputNumbers label_numbers(const EvaluatedRows& rows) {
  return {static_cast<std::size_t>(rows.target().count()),
          {rows.predictions.begin(), rows.predictions.end()},
          rows.numbers_of(rows.target().name)};
}

std::string labels_text(const Field& target, std::span<const double> row) {
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] < kLabelThreshold) continue;
    text += (text.empty() ? "" : ", ") + (i < target.names.size() ? target.names[i] : std::to_string(i));
  }
  return text.empty() ? "none" : text;
}

std::array<TaskMetric, 3> label_set_metrics() {
  return {mean_of<AveragePrecision>({"map", "mAP", true, true}), mean_of<F1>({"f1", "mean F1", true, true}),
          TaskMetric{
              .metric = {"exact_match", "exact match", true, true}, .tally = make_tally<ExactMatch>, .on_host = true}};
}

std::array<TaskMetric, 4> single_label_metrics() {
  return {mean_of<AveragePrecision>({"average_precision", "AP", true, true}),
          mean_of<Precision>({"precision", "precision", true, true}), mean_of<Recall>({"recall", "recall", true, true}),
          mean_of<F1>({"f1", "F1", true, true})};
}

}  // namespace gpunn::tasks
