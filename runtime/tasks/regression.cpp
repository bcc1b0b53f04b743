// One number or several a row.
#include <gpunn/ops.h>

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

const Task& regression() {
  static const Regression task;
  return task;
}

}  // namespace gpunn::tasks
