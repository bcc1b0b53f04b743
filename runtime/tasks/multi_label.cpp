// Any number of labels a row, out of several.
#include <gpunn/ops.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tasks/losses.hpp"
#include "tasks/output_metric.hpp"
#include "tasks/target_task.hpp"

namespace gpunn::tasks {

namespace {

constexpr float kThreshold = 0.5F;  // a probability from here on counts as the label

// The sum over the distinct scores of a label, falling, of the rise of the recall times the precision there, as
// scikit-learn's average_precision_score has it. Undefined if no row has the label.
class AveragePrecision {
 public:
  void add(double score, double target) { rows_.push_back({score, target > kThreshold}); }
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
    const bool has = target > kThreshold, predicted = probability >= kThreshold;
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
class ExactMatch : public RowMetric {
 public:
  void add(const ScoredRows& rows) override {
    const auto labels = static_cast<std::size_t>(rows.outputs);
    for (std::size_t first = 0; first < rows.targets.size(); first += labels) {
      bool same = true;
      for (std::size_t i = first; i < first + labels; ++i) {
        same = same && (rows.targets[i] > kThreshold) == (rows.predictions[i] >= kThreshold);
      }
      matches_ += same ? 1 : 0;
      rows_ += 1;
    }
  }
  double value() const override { return rows_ > 0 ? matches_ / rows_ : kUndefined; }

 private:
  double matches_ = 0, rows_ = 0;
};

class MultiLabel : public TargetTask {
 public:
  std::string_view name() const override { return "multi_label"; }
  std::string_view help() const override { return "each sample has any number of labels"; }
  std::string_view target_kind() const override { return "label_set"; }
  std::string_view output() const override { return "label"; }
  std::string_view target() const override { return "labels"; }
  std::span<const TaskMetric> metrics() const override {
    static const std::array<TaskMetric, 3> metrics = {
        TaskMetric{.metric = {"map", "mAP", true, true}, .of_rows = make_mean<AveragePrecision>},
        TaskMetric{.metric = {"f1", "mean F1", true, true}, .of_rows = make_mean<F1>},
        TaskMetric{.metric = {"exact_match", "exact match", true, true}, .of_rows = make_metric<ExactMatch>}};
    return metrics;
  }
  std::span<const TaskMetric> output_metrics() const override {
    static const std::array<TaskMetric, 4> metrics = {
        TaskMetric{.metric = {"average_precision", "AP", true, true}, .of_rows = make_mean<AveragePrecision>},
        TaskMetric{.metric = {"precision", "precision", true, true}, .of_rows = make_mean<Precision>},
        TaskMetric{.metric = {"recall", "recall", true, true}, .of_rows = make_mean<Recall>},
        TaskMetric{.metric = {"f1", "F1", true, true}, .of_rows = make_mean<F1>}};
    return metrics;
  }
  // The labels, or "none".
  std::string row_text(std::span<const float> values, const std::vector<std::string>& names) const override {
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] < kThreshold) continue;
      text += (text.empty() ? "" : ", ") + (i < names.size() ? names[i] : std::to_string(i));
    }
    return text.empty() ? "none" : text;
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::binary_cross_entropy};
    return kinds;
  }
  gpunn_op prediction_op(const graph::Graph&, const TaskContext& c, const ModelOutputs&) const override {
    return ends_in_part_of_loss(c.experiment) ? GPUNN_OP_COPY : GPUNN_OP_SIGMOID;
  }
};

}  // namespace

const Task& multi_label() {
  static const MultiLabel task;
  return task;
}

}  // namespace gpunn::tasks
