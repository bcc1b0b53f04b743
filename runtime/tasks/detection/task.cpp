// Objects in images: boxes around them and their classes.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tasks/detection/average_precision.hpp"
#include "tasks/detection/head.hpp"
#include "tasks/detection/rows.hpp"
#include "tasks/output_metric.hpp"

namespace gpunn::tasks {

namespace {

using graph::Graph;
using graph::ValueId;

std::span<const float> targets_of(const ScoredRows& rows, std::size_t row) {
  const auto size = static_cast<std::size_t>(rows.target_size);
  return rows.targets.subspan(row * size, size);
}

int64_t classes_in(const std::vector<DetectionImage>& images) {
  int64_t classes = 0;
  for (const DetectionImage& image : images) {
    for (const TrueBox& object : image.objects) classes = std::max(classes, object.category + 1);
  }
  return classes;
}

double voc_all_points(const std::vector<DetectionImage>& images) {
  return voc_mean(images, classes_in(images), all_points);
}
double coco_mean(const std::vector<DetectionImage>& images) { return coco_figures(images, classes_in(images)).mean; }

// A figure of all images together.
template <double (*figure)(const std::vector<DetectionImage>&)>
class OfDetections : public RowMetric {
 public:
  void add(const ScoredRows& rows) override {
    const auto count = rows.targets.size() / static_cast<std::size_t>(rows.target_size);
    for (std::size_t row = 0; row < count; ++row) images_.push_back(detection_image(rows, row));
  }
  double value() const override { return figure(images_); }

 private:
  std::vector<DetectionImage> images_;
};

class DetectionTask : public Task {
 public:
  std::string_view name() const override { return "detection"; }
  std::string_view help() const override { return "each sample has boxes around objects of some classes"; }
  std::string command(const std::string& model) const override { return "predict " + model + " IMAGE --draw found/"; }
  std::string_view target_kind() const override { return "boxes"; }
  std::string_view output() const override { return "class"; }
  std::string_view target() const override { return "boxes"; }
  std::span<const TaskMetric> metrics() const override {
    static const std::array<TaskMetric, 2> metrics = {
        TaskMetric{.metric = {"map_50", "mAP at 0.5", true, true},
                   .of_rows = make_metric<OfDetections<voc_all_points>>},
        TaskMetric{.metric = {"map_coco", "mAP of COCO", true, true}, .of_rows = make_metric<OfDetections<coco_mean>>}};
    return metrics;
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::focal, LossKind::multibox};
    return kinds;
  }
  std::array<const char*, 2> output_names() const override { return {"points", "boxes"}; }
  bool names_outputs() const override { return false; }
  std::string row_text(std::span<const float> values, const std::vector<std::string>&) const override {
    return std::to_string(values.size()) + " numbers of boxes";
  }
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

double image_scale(const ScoredRows& rows, std::size_t row) {
  if (!rows.originals.empty()) return rows.originals[row].scale;
  const std::span<const float> targets = targets_of(rows, row);
  // All boxes have the image's scale, those that are none too.
  return targets.size() >= kBoxNumbers && targets[6] > 0 ? static_cast<double>(targets[6]) : 1.0;
}

DetectionImage detection_image(const ScoredRows& rows, std::size_t row) {
  const double scale = image_scale(rows, row);
  const auto box = [&](const float* at) {
    return Box{static_cast<double>(at[0]) / scale, static_cast<double>(at[1]) / scale,
               static_cast<double>(at[2]) / scale, static_cast<double>(at[3]) / scale};
  };
  DetectionImage image;
  const TrueImage* const original = rows.originals.empty() ? nullptr : &rows.originals[row];
  if (original != nullptr) {
    image.objects = original->objects;
    image.order = original->order;
  } else {
    const std::span<const float> targets = targets_of(rows, row);
    for (std::size_t i = 0; i + kBoxNumbers <= targets.size(); i += kBoxNumbers) {
      const float* const at = targets.data() + i;
      if (!(at[4] >= 0)) continue;
      image.objects.push_back(
          {.box = box(at), .category = static_cast<int64_t>(at[4]), .difficult = at[5] != 0, .crowd = false});
    }
  }
  const auto width = static_cast<std::size_t>(rows.outputs);
  const std::span<const float> predictions = rows.predictions.subspan(row * width, width);
  for (std::size_t i = 0; i + kDetectionNumbers <= predictions.size(); i += kDetectionNumbers) {
    const float* const at = predictions.data() + i;
    if (!(at[5] >= 0)) break;
    image.detections.push_back({box(at), static_cast<int64_t>(at[5]), static_cast<double>(at[4])});
    if (original == nullptr) continue;
    // As predictions of the file have it.
    Box& found = image.detections.back().box;
    const double h = original->height, w = original->width;
    found = {std::clamp(found.left, 0.0, w), std::clamp(found.top, 0.0, h), std::clamp(found.right, 0.0, w),
             std::clamp(found.bottom, 0.0, h)};
  }
  return image;
}

const Task& detection() {
  static const DetectionTask task;
  return task;
}

}  // namespace gpunn::tasks
