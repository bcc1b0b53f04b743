#include "compiler/autodiff.hpp"

#include <gpunn/ops.h>

#include <algorithm>

#include "catch.hpp"
#include "ops/op.hpp"

using namespace gpunn;
using namespace gpunn::compiler;
using namespace gpunn::graph;

namespace {

int count(const Graph& g, int32_t op) {
  return static_cast<int>(std::ranges::count_if(g.nodes(), [op](const Node& node) { return node.op == op; }));
}

struct Tape {
  Graph g;
  ValueId label = g.add_value("label", {DType::i32, {8}}, Storage::data);
  ValueId rows = g.add_value("count", {DType::i32, {}}, Storage::data);

  ValueId parameter(const std::string& name, Shape shape) {
    return g.add_value(name, {DType::f32, std::move(shape)}, Storage::parameters);
  }
  ValueId loss(ValueId logits) {
    const ValueId losses = g.add(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, "loss", {}, {logits, label}).front();
    return g.add1(GPUNN_OP_MEAN_ROWS, "mean", {}, {losses, rows});
  }
  ValueId linear(ValueId x, ValueId w) {
    return g.add1(GPUNN_OP_MATMUL, "linear",
                  Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 1}), {x, w});
  }
};

}  // namespace

TEST_CASE("gradients have their targets' types, and the data gets none") {
  Tape t;
  const ValueId x = t.g.add_value("x", {DType::f32, {8, 5}}, Storage::data);
  const ValueId w1 = t.parameter("w1", {7, 5});
  const ValueId b1 = t.parameter("b1", {7});
  const ValueId w2 = t.parameter("w2", {3, 7});
  const ValueId hidden =
      t.g.add1(GPUNN_OP_RELU, "relu", {}, {t.g.add1(GPUNN_OP_BIAS_ADD, "bias", {}, {t.linear(x, w1), b1})});
  const std::vector<ValueId> targets{w1, b1, w2};
  const auto gradients = add_gradients(t.g, t.loss(t.linear(hidden, w2)), targets);
  REQUIRE(gradients.size() == 3);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    CHECK(t.g.value(gradients[i]).type == t.g.value(targets[i]).type);
  }
  // Two for the weights, one for the hidden layer, none for x.
  CHECK(count(t.g, GPUNN_OP_MATMUL) == 2 + 3);
}

TEST_CASE("a value used twice has its gradients added") {
  Tape t;
  const ValueId x = t.g.add_value("x", {DType::f32, {8, 3}}, Storage::data);
  const ValueId w = t.parameter("w", {3, 3});
  const auto gradients = add_gradients(t.g, t.loss(t.linear(t.linear(x, w), w)), {w});
  CHECK(t.g.value(gradients[0]).type == t.g.value(w).type);
  CHECK(count(t.g, GPUNN_OP_ADD) == 1);
}

TEST_CASE("the gradient of CLAMP broadcasts nothing, so that images may have any layout") {
  Tape t;
  Graph& g = t.g;
  const ValueId x = t.parameter("x", {8, 3, 4, 4});
  const ValueId y =
      g.add1(GPUNN_OP_CLAMP, "clamp", Attributes::of(gpunn_clamp_attrs{.struct_size = 0, .low = 0, .high = 6}), {x});
  const ValueId flat = g.add_view("flat", y, {DType::f32, {8, 48}});
  add_gradients(g, t.loss(t.linear(flat, t.parameter("w", {3, 48}))), {x});
  const auto equal = std::ranges::find(g.nodes(), int32_t{GPUNN_OP_EQUAL}, &Node::op);
  REQUIRE(equal != g.nodes().end());
  const auto masked = std::ranges::find_if(
      g.nodes(), [&](const Node& node) { return std::ranges::count(node.inputs, equal->outputs[0]) != 0; });
  REQUIRE(masked != g.nodes().end());
  for (const ValueId input : masked->inputs) CHECK(g.value(input).type.shape == g.value(x).type.shape);
}

TEST_CASE("gradients flow through a flattening view") {
  Tape t;
  const ValueId x = t.g.add_value("x", {DType::f32, {8, 1, 4, 4}}, Storage::data);
  const ValueId filter = t.parameter("filter", {2, 1, 3, 3});
  const ValueId w = t.parameter("w", {3, 8});
  gpunn_conv2d_attrs conv{};
  for (int i = 0; i < 2; ++i) conv.stride[i] = conv.dilation[i] = 1;
  conv.groups = 1;
  const ValueId image = t.g.add1(GPUNN_OP_CONV2D, "conv", Attributes::of(conv), {x, filter});
  const ValueId flat = t.g.add_view("flat", image, {DType::f32, {8, 8}});
  const auto gradients = add_gradients(t.g, t.loss(t.linear(flat, w)), {filter, w});
  CHECK(t.g.value(gradients[0]).type.shape == Shape{2, 1, 3, 3});
  CHECK(count(t.g, GPUNN_OP_CONV2D_BACKWARD_FILTER) == 1);
  CHECK(count(t.g, GPUNN_OP_CONV2D_BACKWARD_DATA) == 0);
}

TEST_CASE("targets may be views of one flat array") {
  Tape t;
  const ValueId x = t.g.add_value("x", {DType::f32, {8, 5}}, Storage::data);
  const ValueId flat = t.parameter("parameters", {40});
  const ValueId w = t.g.add_view("w", flat, {DType::f32, {3, 5}}, 64);
  const auto gradients = add_gradients(t.g, t.loss(t.linear(x, w)), {w});
  CHECK(t.g.value(gradients[0]).type.shape == Shape{3, 5});
}

TEST_CASE("a target that the loss does not depend on has no gradient") {
  Tape t;
  const ValueId x = t.g.add_value("x", {DType::f32, {8, 5}}, Storage::data);
  const ValueId w = t.parameter("w", {3, 5});
  const ValueId unused = t.parameter("unused", {3, 5});
  const auto gradients = add_gradients(t.g, t.loss(t.linear(x, w)), {w, unused});
  CHECK(gradients[0] != kNoValue);
  CHECK(gradients[1] == kNoValue);
}

TEST_CASE("an op without a gradient on the way is an error that names it") {
  Tape t;
  const ValueId w = t.parameter("w", {8, 3});
  const ValueId norm = t.g.add1(GPUNN_OP_NORM, "squash", {}, {w});
  CHECK_THROWS_WITH(add_gradients(t.g, norm, {w}), Contains("'squash': NORM has no gradient"));
  CHECK_THROWS_WITH(add_gradients(t.g, w, {w}), Contains("a loss must be a scalar"));
}
