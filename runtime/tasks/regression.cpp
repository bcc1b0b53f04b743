// One number or several a row.
#include <gpunn/ops.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/significant_digits.hpp"
#include "tasks/output_metric.hpp"
#include "tasks/target_task.hpp"

namespace gpunn::tasks {

namespace {

// The mean over the rows of the distance between prediction and target.
class AbsoluteError {
 public:
  void add(double prediction, double target) {
    sum_ += std::abs(prediction - target);
    rows_ += 1;
  }
  double value() const { return rows_ > 0 ? sum_ / rows_ : kUndefined; }

 private:
  double sum_ = 0, rows_ = 0;
};

// The root of the mean over the rows of the squared distance.
class SquaredError {
 public:
  void add(double prediction, double target) {
    const double error = prediction - target;
    sum_ += error * error;
    rows_ += 1;
  }
  double value() const { return rows_ > 0 ? std::sqrt(sum_ / rows_) : kUndefined; }

 private:
  double sum_ = 0, rows_ = 0;
};

// The coefficient of determination: 1 - sum of squared errors / sum of squares about the mean. Undefined if the
// target does not vary.
class Determination {
 public:
  void add(double prediction, double target) {
    const double error = prediction - target;
    // Welford's way, so that a large mean does not swallow the variance.
    rows_ += 1;
    const double before = target - mean_;
    mean_ += before / rows_;
    about_mean_ += before * (target - mean_);
    squared_errors_ += error * error;
  }
  double value() const { return about_mean_ > 0 ? 1 - squared_errors_ / about_mean_ : kUndefined; }

 private:
  double rows_ = 0, mean_ = 0, about_mean_ = 0, squared_errors_ = 0;
};

class Regression : public TargetTask {
 public:
  std::string_view name() const override { return "regression"; }
  std::string_view help() const override { return "each sample has numbers that the model predicts"; }
  std::string_view target_kind() const override { return "numbers"; }
  std::string_view output() const override { return "target column"; }
  std::string_view target() const override { return "target columns"; }
  // Each the mean of the columns', as scikit-learn has them.
  std::span<const TaskMetric> metrics() const override {
    static const std::array<TaskMetric, 3> metrics = {
        TaskMetric{.metric = {"r2", "R²", true, false}, .of_rows = make_mean<Determination>},
        TaskMetric{.metric = {"rmse", "RMSE", false, false}, .of_rows = make_mean<SquaredError>},
        TaskMetric{.metric = {"mae", "MAE", false, false}, .of_rows = make_mean<AbsoluteError>}};
    return metrics;
  }
  std::span<const TaskMetric> output_metrics() const override { return metrics(); }
  std::string row_text(std::span<const float> values, const std::vector<std::string>& names) const override {
    return numbers_text(std::vector<double>(values.begin(), values.end()), names, {});
  }
  std::array<const char*, 2> output_names() const override { return {"outputs", "values"}; }
  Decoded decode(std::span<const float> predictions, const std::vector<std::string>& names, int64_t) const override {
    Decoded decoded;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      decoded.values.push_back({.name = names[i], .value = static_cast<double>(predictions[i])});
    }
    return decoded;
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::mean_squared_error, LossKind::huber};
    return kinds;
  }
  gpunn_op prediction_op(const graph::Graph&, const TaskContext&, const ModelOutputs&) const override {
    return GPUNN_OP_COPY;
  }
};

}  // namespace

std::string numbers_text(std::span<const double> values, const std::vector<std::string>& names,
                         std::span<const double> stddev) {
  constexpr int kDigits = 5;
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    if (values.size() > 1) text += (i < names.size() ? names[i] : std::to_string(i)) + " ";
    text += fmt::format("{:.{}g}", values[i], digits_beyond(values[i], i < stddev.size() ? stddev[i] : 0, kDigits));
  }
  return text;
}

const Task& regression() {
  static const Regression task;
  return task;
}

}  // namespace gpunn::tasks
