// Any number of labels a row, out of several.
#include <gpunn/ops.h>

#include <array>
#include <memory>

#include "tasks/losses.hpp"
#include "tasks/metrics/label_sets.hpp"
#include "tasks/output_report.hpp"
#include "tasks/target_task.hpp"

namespace gpunn::tasks {

namespace {

class MultiLabel : public TargetTask {
 public:
  std::string_view name() const override { return "multi_label"; }
  std::string_view help() const override { return "each sample has any number of labels"; }
  std::string_view target_kind() const override { return "label_set"; }
  std::string_view output() const override { return "label"; }
  std::string_view target() const override { return "labels"; }
  Answers answers() const override { return {.what = "labels"}; }
  std::span<const TaskMetric> metrics() const override {
    static const auto metrics = label_set_metrics();
    return metrics;
  }
  std::unique_ptr<Report> make_report(const ReportInputs& inputs) const override {
    static const auto metrics = single_label_metrics();
    return make_output_report(inputs,
                              {.metrics = metrics, .numbers = label_numbers, .text = labels_text, .counts_rows = true});
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::binary_cross_entropy};
    return kinds;
  }

 protected:
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
