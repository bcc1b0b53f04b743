// Objects in images: boxes around them and their classes.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tasks/detection/head.hpp"
#include "tasks/detection/metrics.hpp"
#include "tasks/detection/report.hpp"
#include "tasks/detection/rows.hpp"

namespace gpunn::tasks {

namespace {

using graph::Graph;
using graph::ValueId;

class DetectionTask : public Task {
 public:
  std::string_view name() const override { return "detection"; }
  std::string_view help() const override { return "each sample has boxes around objects of some classes"; }
  std::string command(const std::string& model) const override { return "predict " + model + " IMAGE --draw found/"; }
  std::string_view target_kind() const override { return "boxes"; }
  std::string_view output() const override { return "class"; }
  std::string_view target() const override { return "boxes"; }
  std::span<const TaskMetric> metrics() const override {
    static const auto metrics = detection_metrics();
    return metrics;
  }
  std::unique_ptr<Report> make_report(const ReportInputs& inputs) const override {
    return make_detection_report(inputs);
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::focal, LossKind::multibox};
    return kinds;
  }
  std::span<const std::string_view> unused_loss_keys() const override {
    static constexpr std::array<std::string_view, 1> keys = {"class_weights"};
    return keys;
  }
  std::array<const char*, 2> output_names() const override { return {"points", "boxes"}; }
  bool names_outputs() const override { return false; }
  Decoded decode(std::span<const float> predictions, const std::vector<std::string>& names,
                 int64_t top) const override {
    Decoded decoded;
    for (std::size_t i = 0; i + kDetectionNumbers <= predictions.size(); i += kDetectionNumbers) {
      const float* const one = predictions.data() + i;
      if (!(one[5] >= 0) || std::ssize(decoded.boxes) == top) break;
      const auto index = static_cast<std::size_t>(one[5]);
      decoded.boxes.push_back({one[0], one[1], one[2], one[3], static_cast<int64_t>(index),
                               index < names.size() ? names[index] : std::to_string(index), one[4]});
    }
    return decoded;
  }

  bool is_of_layer(std::string_view type) const override { return is_detection_head(type); }
  bool trains_layer(std::string_view type) const override { return type != found_kind().layer; }

  void require_output(const Graph& g, const TaskContext& c, const ModelOutputs& outputs) const override {
    detection_head(g, c, outputs);
  }
  ValueId add_training_loss(Graph& g, const TaskContext& c, const ModelOutputs& outputs,
                            const Batch& batch) const override {
    return detection_head(g, c, outputs)->add_loss(g, c, outputs.last, batch.fields.at(kTargetField), false);
  }
  ValueId add_evaluation_loss(Graph& g, const TaskContext& c, const ModelOutputs& outputs,
                              const Batch& batch) const override {
    return detection_head(g, c, outputs)->add_loss(g, c, outputs.last, batch.fields.at(kTargetField), true);
  }
  ValueId add_scores(Graph& g, const TaskContext& c, const ModelOutputs& outputs) const override {
    return detection_head(g, c, outputs)->add_detections(g, outputs.last);
  }
  gpunn_op prediction_op(const Graph&, const TaskContext&, const ModelOutputs&) const override { return GPUNN_OP_COPY; }
};

}  // namespace

const Task& detection() {
  static const DetectionTask task;
  return task;
}

}  // namespace gpunn::tasks
