// One number or several a row.
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tasks/metrics/number_errors.hpp"
#include "tasks/output_report.hpp"
#include "tasks/target_task.hpp"

namespace gpunn::tasks {

namespace {

class Regression : public TargetTask {
 public:
  std::string_view name() const override { return "regression"; }
  std::string_view help() const override { return "each sample has numbers that the model predicts"; }
  std::string_view target_kind() const override { return "numbers"; }
  std::string_view output() const override { return "target column"; }
  std::string_view target() const override { return "target columns"; }
  std::span<const TaskMetric> metrics() const override {
    static const auto metrics = number_errors();
    return metrics;
  }
  std::unique_ptr<Report> make_report(const ReportInputs& inputs) const override {
    return make_output_report(
        inputs, {.metrics = metrics(), .numbers = numbers_in_units, .text = numbers_text, .keeps_values = true});
  }
  Answers answers() const override {
    return {.outputs = {"outputs", "values"}, .what = "numbers", .probabilities = false};
  }
  Decoded decode(const PredictedRow& row) const override {
    Decoded decoded;
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      decoded.values.push_back({.name = row.names[i], .value = static_cast<double>(row.values[i])});
    }
    return decoded;
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::mean_squared_error, LossKind::huber};
    return kinds;
  }
};

}  // namespace

const Task& regression() {
  static const Regression task;
  return task;
}

}  // namespace gpunn::tasks
