// Detectors: points of maps, and what is kept of boxes that overlap.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "export/onnx_builder.hpp"

namespace gpunn::interchange {

namespace {

std::string points(OnnxBuilder& b, const OnnxStep& step) {
  const auto attrs = step.node->attrs.as<gpunn_grid_points_attrs>();
  std::vector<float> values;
  for (int32_t row = 0; row < attrs.rows; ++row) {
    for (int32_t column = 0; column < attrs.columns; ++column) {
      values.push_back((static_cast<float>(column) + 0.5F) * attrs.stride);
      values.push_back((static_cast<float>(row) + 0.5F) * attrs.stride);
      values.push_back(attrs.stride);
    }
  }
  return b.floats(step.node->name, values, {int64_t{attrs.rows} * attrs.columns, 3});
}

// ONNX's NonMaxSuppression tells which boxes are kept, of each class by itself and in a list of all images. So the
// scores of these go back to their places, and the best `most` of an image are taken from there. The node's ties, as
// ours, go to the first in memory.
std::string suppressed(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  const auto attrs = step.node->attrs.as<gpunn_suppression_attrs>();
  if (attrs.by_class == 0) throw Error("layer '" + layer + "' compares boxes of all classes, which ONNX does not");
  const int64_t anchors = b.shape(step.inputs[1]).at(1).fixed, classes = b.shape(step.inputs[1]).at(2).fixed;
  const int64_t most = attrs.most, there = std::min(most, anchors * classes);
  using Names = std::vector<std::string>;
  const auto node = [&](const char* op, Names inputs, std::vector<OnnxAttribute> attributes = {}) {
    return b.add(layer, op, std::move(inputs), std::move(attributes), false);
  };
  const auto reshaped = [&](const std::string& x, const std::vector<int64_t>& to) {
    return node("Reshape", {x, b.integers(layer, to)});  // 0: as it is
  };
  const std::string boxes = b.tensor(step.inputs[0]), scores = b.tensor(step.inputs[1]);
  const std::string by_class = node("Transpose", {scores}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const std::string kept = b.add(layer, "NonMaxSuppression",
                                 {boxes, by_class, b.integers(layer, {most}), b.floats(layer, {attrs.overlap}, {1}),
                                  b.floats(layer, {attrs.least_score}, {1})});
  const std::string places = node("Gather", {kept, b.integers(layer, {0, 2, 1})}, {{"axis", int64_t{1}}});
  const std::string none = node("Expand", {b.number(layer, -1), node("Shape", {scores})});
  const std::string left = node("ScatterND", {none, places, node("GatherND", {scores, places})});

  std::string best = node("TopK", {reshaped(left, {0, anchors * classes}), b.integers(layer, {there})});
  std::string place = b.unique(layer + "_place");
  b.model().nodes.back().outputs.push_back(place);
  if (there < most) {
    const std::string behind = b.integers(layer, {0, 0, 0, most - there});
    best = node("Pad", {best, behind, b.number(layer, -1)});
    place = node("Pad", {place, behind});
  }
  const std::string count = b.integers(layer, {classes});
  const std::string box =
      node("GatherND", {boxes, reshaped(node("Div", {place, count}), {0, most, 1})}, {{"batch_dims", int64_t{1}}});
  const std::string category =
      node("Cast", {node("Mod", {place, count})}, {{"to", static_cast<int64_t>(OnnxType::f32)}});
  const std::string found = reshaped(node("LessOrEqual", {b.number(layer, 0), best}), {0, most, 1});
  const auto where_found = [&](const std::string& x, double otherwise) {
    return node("Where", {found, x, b.number(layer, otherwise)});
  };
  return node("Concat",
              {where_found(box, 0), where_found(reshaped(best, {0, most, 1}), 0),
               where_found(reshaped(category, {0, most, 1}), -1)},
              {{"axis", int64_t{2}}});
}

}  // namespace

bool add_detection_step(OnnxBuilder& b, const OnnxStep& step) {
  switch (step.node->op) {
    case GPUNN_OP_GRID_POINTS:
      b.define(step.outputs.front(), points(b, step));
      return true;
    case GPUNN_OP_NON_MAXIMUM_SUPPRESSION:
      b.define(step.outputs.front(), suppressed(b, step));
      return true;
    default:
      return false;
  }
}

}  // namespace gpunn::interchange
