// Any number of labels a row, out of several.
#include <gpunn/ops.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "tasks/losses.hpp"
#include "tasks/registry.hpp"

namespace gpunn::tasks {

using graph::Graph;
using graph::ValueId;

namespace {

constexpr float kThreshold = 0.5F;  // a probability from here on counts as the label
constexpr double kSaysNothing = std::numeric_limits<double>::quiet_NaN();

// The mean over the labels that any row has of each one's average precision: the sum over its distinct scores, falling,
// of the rise of the recall times the precision there, as scikit-learn's average_precision_score has it.
class MeanAveragePrecision : public RowMetric {
 public:
  void add(const ScoredRows& rows) override {
    const auto labels = static_cast<std::size_t>(rows.outputs);
    by_label_.resize(labels);
    for (std::size_t i = 0; i < rows.targets.size(); ++i) {
      by_label_[i % labels].push_back({rows.predictions[i], rows.targets[i] > kThreshold});
    }
  }
  double value() const override {
    double sum = 0, labels = 0;
    for (const std::vector<Scored>& one : by_label_) {
      const double precision = average_precision(one);
      if (precision < 0) continue;
      sum += precision;
      labels += 1;
    }
    return labels > 0 ? sum / labels : kSaysNothing;
  }

 private:
  struct Scored {
    float score = 0;
    bool has = false;
  };

  // -1 where no row has the label.
  static double average_precision(std::vector<Scored> rows) {
    const auto all = static_cast<double>(std::ranges::count(rows, true, &Scored::has));
    if (all == 0) return -1;
    std::ranges::sort(rows, std::greater<>(), &Scored::score);
    double sum = 0, hits = 0, hits_before = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      hits += rows[i].has ? 1 : 0;
      const bool last_of_equal = i + 1 == rows.size() || rows[i + 1].score != rows[i].score;
      if (!last_of_equal) continue;
      sum += (hits - hits_before) / all * hits / static_cast<double>(i + 1);
      hits_before = hits;
    }
    return sum;
  }

  std::vector<std::vector<Scored>> by_label_;
};

// The mean over all labels of 2 tp / (2 tp + fp + fn); 0 for a label that neither a row nor a prediction has.
class MeanF1 : public RowMetric {
 public:
  void add(const ScoredRows& rows) override {
    const auto labels = static_cast<std::size_t>(rows.outputs);
    counts_.resize(labels);
    for (std::size_t i = 0; i < rows.targets.size(); ++i) {
      const bool has = rows.targets[i] > kThreshold, predicted = rows.predictions[i] >= kThreshold;
      Counts& label = counts_[i % labels];
      label.both += has && predicted ? 1 : 0;
      label.either += (has ? 1 : 0) + (predicted ? 1 : 0);
    }
  }
  double value() const override {
    double sum = 0;
    for (const Counts& label : counts_) sum += label.either > 0 ? 2 * label.both / label.either : 0;
    return counts_.empty() ? kSaysNothing : sum / static_cast<double>(counts_.size());
  }

 private:
  struct Counts {
    double both = 0, either = 0;
  };
  std::vector<Counts> counts_;
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
  double value() const override { return rows_ > 0 ? matches_ / rows_ : kSaysNothing; }

 private:
  double matches_ = 0, rows_ = 0;
};

template <class T>
std::unique_ptr<RowMetric> make() {
  return std::make_unique<T>();
}

class MultiLabel : public Task {
 public:
  std::string_view name() const override { return "multi_label"; }
  std::string_view help() const override { return "each sample has any number of labels"; }
  std::string_view target() const override { return "labels"; }
  std::span<const TaskMetric> metrics() const override {
    static const std::array<TaskMetric, 3> metrics = {
        TaskMetric{.metric = {"map", "mAP", true, true}, .of_rows = make<MeanAveragePrecision>},
        TaskMetric{.metric = {"f1", "mean F1", true, true}, .of_rows = make<MeanF1>},
        TaskMetric{.metric = {"exact_match", "exact match", true, true}, .of_rows = make<ExactMatch>}};
    return metrics;
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::binary_cross_entropy};
    return kinds;
  }

  void require_output(const Graph& g, const TaskContext& c, ValueId output) const override {
    require_outputs(g, c.experiment, output, c.outputs, target());
  }
  ValueId add_training_loss(Graph& g, const TaskContext& c, ValueId output, const Batch& batch) const override {
    require_output(g, c, output);
    return add_loss_to_target(g, c.experiment.loss, output, batch.target);
  }
  ValueId add_evaluation_loss(Graph& g, const TaskContext& c, ValueId output, const Batch& batch) const override {
    return add_training_loss(g, c, output, batch);
  }
  void add_to_totals(Graph& g, const TaskContext&, ValueId, const Batch& batch, ValueId losses,
                     ValueId totals) const override {
    g.add(GPUNN_OP_METRICS_ACCUMULATE, "metrics", {}, {losses, batch.count, totals});
  }
  ValueId add_scores(Graph&, const TaskContext&, ValueId output) const override { return output; }
  gpunn_op prediction_op(const TaskContext&, const TensorType&) const override { return GPUNN_OP_SIGMOID; }
};

}  // namespace

const Task& multi_label() {
  static const MultiLabel task;
  return task;
}

}  // namespace gpunn::tasks
