// What detectors have in common.
#include "tasks/detection/head.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tasks/losses.hpp"

namespace gpunn::tasks {

using graph::Attributes;
using graph::Expressions;
using graph::Graph;
using graph::ValueId;

namespace {

const std::array<HeadKind, 3>& head_kinds() {
  static const std::array<HeadKind, 3> kinds = {fcos_kind(), ssd_kind(), found_kind()};
  return kinds;
}

std::string kinds_text() {
  std::string layers, models;
  for (const HeadKind& kind : head_kinds()) {
    if (kind.example.empty()) continue;
    layers += (layers.empty() ? "" : " or ") + std::string(kind.layer);
    models += (models.empty() ? "models/" : " or models/") + std::string(kind.example) + ".yaml";
  }
  return layers + ", such as " + models;
}

}  // namespace

bool is_detection_head(std::string_view layer) {
  return std::ranges::find(head_kinds(), layer, &HeadKind::layer) != head_kinds().end();
}

std::unique_ptr<DetectionHead> detection_head(const Graph& g, const TaskContext& c, const ModelOutputs& outputs) {
  const LayerSpec& last = c.experiment.model.output_layer();
  const auto kind = std::ranges::find(head_kinds(), last.type, &HeadKind::layer);
  if (kind == head_kinds().end()) {
    throw ConfigError({{last.where, "the task detection needs a model that ends in " + kinds_text() +
                                        "; the last layer '" + last.name + "' is " + last.type}});
  }
  const config::LayerArguments arguments(*config::find_layer_type(last.type), last);
  std::vector<Shape> maps;
  for (const std::string& input : c.experiment.model.sources_of(last)) {
    maps.push_back(g.value(outputs.layers.at(input)).type.shape);
  }
  if (const std::string wrong = kind->refuse(c.experiment.loss, arguments); !wrong.empty()) {
    throw ConfigError({{last.where, last.type + " '" + last.name + "': " + wrong}});
  }
  std::unique_ptr<DetectionHead> head = kind->make({.loss = c.experiment.loss,
                                                    .arguments = arguments,
                                                    .maps = std::move(maps),
                                                    .rule = {.overlap = arguments.number("overlap"),
                                                             .least_score = arguments.number("least_score"),
                                                             .most = arguments.integer("most")}});
  if (const int64_t classes = head->classes(); classes < c.outputs) {
    throw ConfigError(
        {{last.where, data_text(c.experiment.data) + " has " + std::to_string(c.outputs) +
                          " classes, the model's last layer '" + last.name + "' tells " + std::to_string(classes) +
                          ": set model.parameters.classes to at least " + std::to_string(c.outputs)}});
  }
  return head;
}

std::vector<DetectionLevel> HeadInputs::levels() const {
  const std::vector<int64_t> strides = arguments.list("strides");
  std::vector<DetectionLevel> levels;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    levels.push_back({maps[i].at(2), maps[i].at(3), static_cast<double>(strides.at(i))});
  }
  return levels;
}

ValueId DetectionHead::add_detections(Graph& g, ValueId output) const {
  Expressions e(g, "detections");
  const ValueId boxes = e.maximum(add_boxes(g, output), e.constant(0));
  const gpunn_suppression_attrs attrs{.struct_size = 0,
                                      .overlap = static_cast<float>(rule_.overlap),
                                      .least_score = static_cast<float>(rule_.least_score),
                                      .most = static_cast<int32_t>(rule_.most),
                                      .by_class = 1};
  const ValueId found = e.op(GPUNN_OP_NON_MAXIMUM_SUPPRESSION, {boxes, add_scores(g, output)}, Attributes::of(attrs));
  return e.view(found, {e.shape(found)[0], rule_.most * e.shape(found)[2]});
}

ValueId concat(Expressions& e, const std::vector<ValueId>& parts, int32_t axis) {
  if (parts.size() == 1) return parts.front();
  return e.op(GPUNN_OP_CONCAT, parts, Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = axis}));
}

ValueId shared_count(Expressions& e, const TaskContext& c, ValueId x, bool by_row) {
  ValueId sum = e.sum(x, 2U, false);
  if (by_row) return e.maximum(sum, e.constant(1));
  const double of_image = 1.0 / (static_cast<double>(e.shape(x)[0]) * c.world);
  sum = e.sum(sum, 1U, true);
  if (c.world > 1) {
    const gpunn_all_reduce_attrs ranks{.struct_size = 0, .parts = c.world};
    sum = e.op(GPUNN_OP_ALL_REDUCE, {e.view(sum, {1, 1})}, Attributes::of(ranks));
  }
  return e.maximum(e.scaled(sum, of_image), e.constant(of_image));
}

}  // namespace gpunn::tasks
