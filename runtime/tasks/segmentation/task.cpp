// A class for each pixel of an image.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fields/values.hpp"
#include "tasks/losses.hpp"
#include "tasks/segmentation/segmentation.hpp"

namespace gpunn::tasks {

using graph::Graph;
using graph::ValueId;

namespace {

class Segmentation : public Task {
 public:
  std::string_view name() const override { return "segmentation"; }
  std::string_view help() const override { return "each pixel of a sample is of one class"; }
  std::string_view target_kind() const override { return "label_map"; }
  std::string_view output() const override { return "class"; }
  std::string_view target() const override { return "classes of pixels"; }
  std::string command(const std::string& model) const override { return "predict " + model + " IMAGE --draw maps/"; }
  std::span<const TaskMetric> metrics() const override {
    static const auto metrics = pixels::metrics();
    return metrics;
  }
  std::unique_ptr<Report> make_report(const ReportInputs& inputs) const override { return pixels::make_report(inputs); }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::cross_entropy, LossKind::dice, LossKind::focal, LossKind::sum};
    return kinds;
  }
  std::span<const std::string_view> unused_loss_keys() const override {
    static constexpr std::array<std::string_view, 1> keys = {"alpha"};
    return keys;
  }
  std::vector<Table> tables(const TaskContext& c) const override { return pixels::loss_tables(c); }
  Answers answers() const override {
    return {.outputs = {"logits", "classes"},
            .what = "a class for each pixel",
            .address = "segment",
            .named = false,
            .probabilities = false,
            .least = 256};
  }
  // The map of [H,W], and the share of each class in it, the largest first.
  Decoded decode(const PredictedRow& row) const override {
    LabelMap map{.height = row.shape.at(0), .width = row.shape.at(1), .classes = {}};
    std::array<int64_t, 256> pixels = {};
    for (const float value : row.values) {
      map.classes.push_back(static_cast<uint8_t>(value));
      ++pixels[map.classes.back()];
    }
    Decoded decoded;
    for (std::size_t id = 0; id < pixels.size(); ++id) {
      if (pixels[id] == 0) continue;
      decoded.classes.push_back(
          {.index = static_cast<int64_t>(id),
           .name = id < row.names.size() ? row.names[id] : std::to_string(id),
           .probability = static_cast<double>(pixels[id]) / static_cast<double>(row.values.size())});
    }
    std::ranges::stable_sort(decoded.classes, std::greater{}, &ClassProbability::probability);
    if (std::ssize(decoded.classes) > row.top) decoded.classes.resize(static_cast<std::size_t>(row.top));
    decoded.map = std::move(map);
    return decoded;
  }

  std::optional<Field> imagined_target(const Shape& outputs) const override {
    if (outputs.size() != 4) return std::nullopt;
    Field target = fields::target_field(target_kind(), fields::numbered(outputs[1]));
    target.type = {DType::u8, {outputs[2], outputs[3]}};
    return target;
  }

  // [N,C,H,W], with H and W of the label maps if the data is known.
  void require_output(const Graph& g, const TaskContext& c, const ModelOutputs& outputs) const override {
    const TensorType& type = g.value(outputs.last).type;
    Shape expected{type.shape.empty() ? 0 : type.shape[0], c.outputs};
    const Shape sides = c.target == nullptr ? Shape() : c.target->type.shape;
    expected.insert(expected.end(), sides.begin(), sides.end());
    const bool fits =
        type.shape.size() == 4 && std::ranges::equal(expected, std::span(type.shape).first(expected.size()));
    if (fits) return;
    const ModelSpec& model = c.experiment.model;
    const LayerSpec& last = model.output_layer();
    const bool counts = type.shape.size() == 4 && type.shape[1] != c.outputs && model.parameters.contains("classes");
    throw ConfigError(
        {{last.where, "the task segmentation gives each pixel one of the " + std::to_string(c.outputs) +
                          " classes of " + data_text(c.experiment.data) + ": expected " +
                          to_string(TensorType{type.dtype, expected}) + ", the model's last layer '" + last.name +
                          "' gives " + to_string(type) +
                          (counts ? "; set model.parameters.classes to " + std::to_string(c.outputs) : "")}});
  }
  ValueId add_training_loss(Graph& g, const TaskContext& c, const ModelOutputs& outputs,
                            const Batch& batch) const override {
    return add_loss(g, c, outputs, batch, Phase::training);
  }
  // Without label smoothing and class weights.
  ValueId add_evaluation_loss(Graph& g, const TaskContext& c, const ModelOutputs& outputs,
                              const Batch& batch) const override {
    return add_loss(g, c, outputs, batch, Phase::evaluation);
  }
  // The class of each pixel, i32[N,H,W].
  ValueId add_scores(Graph& g, const TaskContext&, const ModelOutputs& outputs) const override {
    return g.add1(GPUNN_OP_ARGMAX, "classes", {}, {outputs.last});
  }

 private:
  ValueId add_loss(Graph& g, const TaskContext& c, const ModelOutputs& outputs, const Batch& batch, Phase phase) const {
    require_output(g, c, outputs);
    return pixels::add_loss(g, c, outputs.last, batch.fields.at(c.target->name), phase);
  }
};

}  // namespace

const Task& segmentation() {
  static const Segmentation task;
  return task;
}

}  // namespace gpunn::tasks
