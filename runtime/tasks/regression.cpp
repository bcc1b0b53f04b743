// Numbers to be foretold, one or several a row.
#include <gpunn/ops.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "tasks/losses.hpp"
#include "tasks/registry.hpp"

namespace gpunn::tasks {

using graph::Graph;
using graph::ValueId;

namespace {

// The mean over all rows and columns of f(prediction - target).
template <class F>
class MeanOfErrors : public RowMetric {
 public:
  void add(const ScoredRows& rows) override {
    for (std::size_t i = 0; i < rows.targets.size(); ++i) {
      sum_ += F::of(static_cast<double>(rows.predictions[i]) - static_cast<double>(rows.targets[i]));
    }
    count_ += static_cast<double>(rows.targets.size());
  }
  double value() const override {
    return count_ > 0 ? F::mean(sum_ / count_) : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  double sum_ = 0, count_ = 0;
};

struct Squares {
  static double of(double error) { return error * error; }
  static double mean(double mean) { return std::sqrt(mean); }
};
struct Distances {
  static double of(double error) { return std::abs(error); }
  static double mean(double mean) { return mean; }
};

// The coefficient of determination, 1 - sum of squared errors / sum of squares about the mean, of each column; their
// mean, as scikit-learn's r2_score has it (multioutput="uniform_average"). NaN where a column does not vary.
class Determination : public RowMetric {
 public:
  void add(const ScoredRows& rows) override {
    const auto columns = static_cast<std::size_t>(rows.outputs);
    columns_.resize(columns);
    for (std::size_t i = 0; i < rows.targets.size(); ++i) {
      Column& column = columns_[i % columns];
      const double target = rows.targets[i], error = static_cast<double>(rows.predictions[i]) - target;
      // Welford's way, so that a large mean does not swallow the variance.
      column.count += 1;
      const double before = target - column.mean;
      column.mean += before / column.count;
      column.about_mean += before * (target - column.mean);
      column.squared_errors += error * error;
    }
  }
  double value() const override {
    double sum = 0;
    for (const Column& column : columns_) {
      if (column.about_mean <= 0) return std::numeric_limits<double>::quiet_NaN();
      sum += 1 - column.squared_errors / column.about_mean;
    }
    return columns_.empty() ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(columns_.size());
  }

 private:
  struct Column {
    double count = 0, mean = 0, about_mean = 0, squared_errors = 0;
  };
  std::vector<Column> columns_;
};

class Regression : public Task {
 public:
  std::string_view name() const override { return "regression"; }
  std::string_view help() const override { return "each sample has numbers that the model foretells"; }
  std::string_view target() const override { return "target columns"; }
  std::span<const TaskMetric> metrics() const override {
    static const std::array<TaskMetric, 3> metrics = {
        TaskMetric{.metric = {"r2", "R²", true, false},
                   .of_rows = []() -> std::unique_ptr<RowMetric> { return std::make_unique<Determination>(); }},
        TaskMetric{.metric = {"rmse", "RMSE", false, false},
                   .of_rows = []() -> std::unique_ptr<RowMetric> { return std::make_unique<MeanOfErrors<Squares>>(); }},
        TaskMetric{.metric = {"mae", "MAE", false, false}, .of_rows = []() -> std::unique_ptr<RowMetric> {
                     return std::make_unique<MeanOfErrors<Distances>>();
                   }}};
    return metrics;
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::mean_squared_error, LossKind::huber};
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
  gpunn_op prediction_op(const TaskContext&, const TensorType&) const override { return GPUNN_OP_COPY; }
};

}  // namespace

const Task& regression() {
  static const Regression task;
  return task;
}

}  // namespace gpunn::tasks
