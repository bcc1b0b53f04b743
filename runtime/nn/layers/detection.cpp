#include <gpunn/ops.h>

#include <cmath>
#include <string>
#include <vector>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::ValueId;

constexpr float kNormEpsilon = 1e-5F;
// What the focal loss begins with: each class is found at a hundredth of all pixels. (Lin et al., 2017.)
constexpr double kPrior = 0.01;

Parameter named(Parameter parameter, const std::string& name) {
  parameter.name = name;
  return parameter;
}

// A convolution of 3x3 that all maps of the pyramid share.
struct SharedConvolution {
  ValueId weight, bias;
};

SharedConvolution shared(const LayerContext& c, const std::string& name, int64_t channels, int64_t filters) {
  constexpr int64_t kWindowSize = 9;
  const int64_t fan_in = channels * kWindowSize;
  return {c.parameter(named(weight(c, {filters, channels, 3, 3}, fan_in, filters * kWindowSize), name + ".weight")),
          c.parameter({.name = name + ".bias", .shape = {filters}, .init = InitKind::zeros, .fan_in = fan_in})};
}

ValueId convolve(const LayerContext& c, const SharedConvolution& by, ValueId x) {
  gpunn_conv2d_attrs attrs{};
  copy({1, 1}, attrs.stride);
  copy({1, 1}, attrs.pad);
  copy({1, 1}, attrs.dilation);
  attrs.groups = 1;
  const ValueId y = c.graph.add1(GPUNN_OP_CONV2D, c.layer.name, Attributes::of(attrs), {x, by.weight});
  return c.graph.add1(GPUNN_OP_BIAS_ADD, c.layer.name, {}, {y, by.bias});
}

// Convolutions in front of an answer, each with a norm over groups of channels and a ReLU.
class Tower {
 public:
  Tower(const LayerContext& c, const std::string& name, int64_t channels) : c_(c) {
    const int64_t width = c.arguments.integer("width");
    groups_ = c.arguments.integer("groups");
    for (int64_t i = 0; i < c.arguments.integer("depth"); ++i) {
      const std::string own = name + std::to_string(i + 1);
      Step step{.convolution = shared(c, own, i == 0 ? channels : width, width)};
      if (groups_ > 0) {
        step.gamma = c.parameter({.name = own + ".norm.weight", .shape = {width}, .init = InitKind::ones});
        step.beta = c.parameter({.name = own + ".norm.bias", .shape = {width}, .init = InitKind::zeros});
      }
      steps_.push_back(step);
    }
  }

  ValueId operator()(ValueId x) const {
    for (const Step& step : steps_) {
      x = convolve(c_, step.convolution, x);
      if (groups_ > 0) x = normalised(step, x);
      x = c_.graph.add1(GPUNN_OP_RELU, c_.layer.name, {}, {x});
    }
    return x;
  }

 private:
  struct Step {
    SharedConvolution convolution;
    ValueId gamma = graph::kNoValue, beta = graph::kNoValue;
  };

  ValueId normalised(const Step& step, ValueId x) const {
    const Shape shape = c_.graph.value(x).type.shape;
    const int64_t size = element_count(shape) / (shape[0] * groups_);
    graph::Expressions e(c_.graph, c_.layer.name);
    const Attributes attrs = Attributes::of(gpunn_layer_norm_attrs{.struct_size = 0, .epsilon = kNormEpsilon});
    const ValueId normal =
        c_.graph
            .add(GPUNN_OP_LAYER_NORM, c_.layer.name, attrs,
                 {view(c_, x, {shape[0] * groups_, size}), e.constant(1, {size}), e.constant(0, {size})})
            .front();
    const ValueId scaled = e.mul(view(c_, normal, shape), view(c_, step.gamma, {shape[1], 1, 1}));
    return c_.graph.add1(GPUNN_OP_BIAS_ADD, c_.layer.name, {}, {scaled, step.beta});
  }

  const LayerContext& c_;
  int64_t groups_ = 0;
  std::vector<Step> steps_;
};

// [N, K, H, W] as [N, H * W, K].
ValueId by_point(const LayerContext& c, ValueId x) {
  const Shape shape = c.graph.value(x).type.shape;
  gpunn_transpose_attrs attrs{};
  attrs.rank = 4;
  const int32_t order[4] = {0, 2, 3, 1};
  for (std::size_t i = 0; i < 4; ++i) attrs.permutation[i] = order[i];
  const ValueId turned = c.graph.add1(GPUNN_OP_TRANSPOSE, c.layer.name, Attributes::of(attrs), {x});
  return view(c, turned, {shape[0], shape[2] * shape[3], shape[1]});
}

ValueId concat(const LayerContext& c, const std::vector<ValueId>& parts, int32_t axis) {
  if (parts.size() == 1) return parts.front();
  return c.graph.add1(GPUNN_OP_CONCAT, c.layer.name, Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = axis}),
                      parts);
}

// [N, points, 5 + classes]: the logarithms of the distances to the four sides in strides, the logit of the centerness,
// and those of the classes; the points of the first map first, row by row.
ValueId fcos_head(const LayerContext& c) {
  constexpr int64_t kSides = 4, kBoxAnswers = 5;
  const int64_t classes = c.arguments.integer("classes");
  const std::vector<int64_t> strides = c.arguments.list("strides");
  if (strides.size() != c.inputs.size()) {
    fail("strides has " + std::to_string(strides.size()) + " numbers, and there are " +
         std::to_string(c.inputs.size()) + " maps");
  }
  const int64_t channels = c.input_shape(0).at(1);
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    require_image(c.input_shape(i));
    if (c.input_shape(i)[1] != channels) {
      fail("expected maps of equally many channels, found " + c.input_text(0) + " and " + c.input_text(i));
    }
  }
  const int64_t width = c.arguments.integer("depth") > 0 ? c.arguments.integer("width") : channels;
  const Tower of_classes(c, "classes", channels), of_boxes(c, "boxes", channels);
  const SharedConvolution to_classes = shared(c, "class", width, classes);
  const SharedConvolution to_sides = shared(c, "sides", width, kSides), to_middle = shared(c, "centerness", width, 1);
  graph::Expressions e(c.graph, c.layer.name);
  const ValueId prior = e.constant(-std::log((1 - kPrior) / kPrior));
  std::vector<ValueId> levels;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const ValueId scale = c.parameter({.name = "scale" + std::to_string(i + 1), .shape = {1}, .init = InitKind::ones});
    const ValueId box_features = of_boxes(c.inputs[i]);
    const ValueId sides = e.mul(convolve(c, to_sides, box_features), view(c, scale, {1, 1, 1, 1}));
    const ValueId middle = convolve(c, to_middle, box_features);
    const ValueId logits = e.add(convolve(c, to_classes, of_classes(c.inputs[i])), prior);
    levels.push_back(by_point(c, concat(c, {sides, middle, logits}, 1)));
  }
  require_sane_size({kBoxAnswers + classes, 1});
  return concat(c, levels, 1);
}

// [N, anchors, 4 + classes (+ 1)]: how the middle and the logarithms of the sides depart from those of an anchor, and
// the logits of the classes, behind them that of the background; the anchors of a pixel one after the other.
ValueId ssd_head(const LayerContext& c) {
  constexpr int64_t kSides = 4;
  const int64_t answers = c.arguments.integer("classes") + (c.arguments.boolean("background") ? 1 : 0);
  const std::vector<int64_t> ratios = c.arguments.list("ratios");
  if (ratios.size() != c.inputs.size()) {
    fail("strides has " + std::to_string(ratios.size()) + " numbers, and there are " + std::to_string(c.inputs.size()) +
         " maps");
  }
  graph::Expressions e(c.graph, c.layer.name);
  std::vector<ValueId> levels;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    require_image(c.input_shape(i));
    const Shape map = c.input_shape(i);
    const std::string number = std::to_string(i + 1);
    const int64_t anchors = 2 * ratios[i];
    require_sane_size({anchors, kSides + answers});
    const SharedConvolution to_sides = shared(c, "sides" + number, map[1], anchors * kSides);
    const SharedConvolution to_classes = shared(c, "class" + number, map[1], anchors * answers);
    const auto by_anchor = [&](ValueId x, int64_t numbers) {
      return view(c, by_point(c, x), {map[0], map[2] * map[3] * anchors, numbers});
    };
    const ValueId sides = by_anchor(convolve(c, to_sides, c.inputs[i]), kSides);
    ValueId logits = convolve(c, to_classes, c.inputs[i]);
    if (!c.arguments.boolean("background")) logits = e.add(logits, e.constant(-std::log((1 - kPrior) / kPrior)));
    levels.push_back(concat(c, {sides, by_anchor(logits, answers)}, 2));
  }
  return concat(c, levels, 1);
}

ValueId non_maximum_suppression(const LayerContext& c) {
  constexpr std::size_t kRank = 3;
  constexpr int64_t kSides = 4;
  for (std::size_t i = 0; i < 2; ++i) require_rank(c.input_shape(i), kRank, "[N, boxes, numbers]", "");
  const Shape boxes = c.input_shape(0), scores = c.input_shape(1);
  if (boxes[1] != scores[1] || boxes[2] != kSides) {
    fail("expected boxes [N, P, 4] and scores [N, P, classes], found " + c.input_text(0) + " and " + c.input_text(1));
  }
  const gpunn_suppression_attrs attrs{.struct_size = 0,
                                      .overlap = static_cast<float>(c.arguments.number("overlap")),
                                      .least_score = static_cast<float>(c.arguments.number("least_score")),
                                      .most = static_cast<int32_t>(c.arguments.integer("most")),
                                      .by_class = 1};
  return c.graph.add1(GPUNN_OP_NON_MAXIMUM_SUPPRESSION, c.layer.name, Attributes::of(attrs), c.inputs);
}

}  // namespace

LayerFunctions detection_layers() {
  return {
      {"fcos_head", fcos_head},
      {"ssd_head", ssd_head},
      {"non_maximum_suppression", non_maximum_suppression},
  };
}

}  // namespace gpunn::nn
