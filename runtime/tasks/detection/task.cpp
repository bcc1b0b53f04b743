// Objects in images: boxes around them and their classes.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "fields/values.hpp"
#include "tasks/detection/head.hpp"
#include "tasks/detection/metrics.hpp"
#include "tasks/detection/report.hpp"
#include "tasks/detection/rows.hpp"

namespace gpunn::tasks {

namespace {

using graph::Graph;
using graph::ValueId;

constexpr int64_t kMostShownBoxes = 10000;  // of an image

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
  Answers answers() const override {
    return {.outputs = {"points", "boxes"},
            .what = "boxes in images",
            .address = "detect",
            .named = false,
            .probabilities = false,
            .box_numbers = kDetectionNumbers,
            .least = kMostShownBoxes};
  }
  Decoded decode(const PredictedRow& row) const override {
    Decoded decoded;
    for (std::size_t i = 0; i + kDetectionNumbers <= row.values.size(); i += kDetectionNumbers) {
      const float* const one = row.values.data() + i;
      if (!(one[5] >= 0) || std::ssize(decoded.boxes) == row.top) break;
      const auto index = static_cast<std::size_t>(one[5]);
      decoded.boxes.push_back({one[0], one[1], one[2], one[3], static_cast<int64_t>(index),
                               index < row.names.size() ? row.names[index] : std::to_string(index), one[4]});
    }
    return decoded;
  }

  std::optional<Field> imagined_target(const Shape& /*outputs*/) const override {
    Field target = fields::target_field(target_kind(), fields::numbered(1));
    target.type = {DType::f32, {BoxSet().most_boxes, kBoxNumbers}};
    return target;
  }
  std::string test_data_advice() const override {
    return "say with data.test_path where they are, or with data.test_boxes which";
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
};

}  // namespace

const Task& detection() {
  static const DetectionTask task;
  return task;
}

}  // namespace gpunn::tasks
