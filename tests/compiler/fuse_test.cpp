#include "compiler/fuse.hpp"

#include <gpunn/ops.h>

#include <map>

#include "catch.hpp"
#include "compiler/decompose.hpp"

using namespace gpunn;
using namespace gpunn::compiler;
using namespace gpunn::graph;

namespace {

struct Net {
  Graph g;
  ValueId x = g.add_value("x", {DType::f32, {4, 6}}, Storage::data);
  ValueId w = g.add_value("w", {DType::f32, {5, 6}}, Storage::parameters);
  ValueId b = g.add_value("b", {DType::f32, {5}}, Storage::parameters);
  ValueId product =
      g.add1(GPUNN_OP_MATMUL, "fc",
             Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 1}), {x, w});
  ValueId sum = g.add1(GPUNN_OP_BIAS_ADD, "fc", {}, {product, b});
  ValueId y = g.add1(GPUNN_OP_RELU, "relu", {}, {sum});
};

std::vector<int32_t> ops_of(const Graph& g) {
  std::vector<int32_t> result;
  for (const Node& node : g.nodes()) result.push_back(node.op);
  return result;
}

// Everything is served at `level` but what `elsewhere` says.
Provider provider(int level, std::map<int32_t, int> elsewhere = {}) {
  return [=](const OpSignature& signature) {
    const auto found = elsewhere.find(signature.op);
    return found == elsewhere.end() ? level : found->second;
  };
}

}  // namespace

TEST_CASE("matmul, bias and relu become one op that writes the relu's value") {
  Net net;
  fuse(net.g, provider(0));
  REQUIRE(ops_of(net.g) == std::vector<int32_t>{GPUNN_OP_MATMUL_BIAS_ACTIVATION});
  const Node& node = net.g.nodes()[0];
  CHECK(node.inputs == std::vector<ValueId>{net.x, net.w, net.b});
  CHECK(node.outputs == std::vector<ValueId>{net.y});
  const auto attrs = node.attrs.as<gpunn_matmul_bias_activation_attrs>();
  CHECK(attrs.activation == GPUNN_ACTIVATION_RELU);
  CHECK(attrs.transpose_b == 1);
}

TEST_CASE("a value that another op reads is not fused away") {
  Net net;
  net.g.add1(GPUNN_OP_SCALE, "spy", Attributes::of(gpunn_scale_attrs{.struct_size = 0, .factor = 2}), {net.sum});
  fuse(net.g, provider(0));
  CHECK(ops_of(net.g) == std::vector<int32_t>{GPUNN_OP_MATMUL_BIAS_ACTIVATION, GPUNN_OP_RELU, GPUNN_OP_SCALE});
  CHECK(net.g.nodes()[0].outputs == std::vector<ValueId>{net.sum});

  Net viewed;
  viewed.g.add_view("view", viewed.product, {DType::f32, {20}});
  fuse(viewed.g, provider(0));
  CHECK(viewed.g.nodes().size() == 3);
}

TEST_CASE("without the composite nothing changes") {
  Net net;
  fuse(net.g, provider(0, {{GPUNN_OP_MATMUL_BIAS_ACTIVATION, -1}}));
  CHECK(net.g.nodes().size() == 3);
}

TEST_CASE("a base's composite does not hide an overlay's own matmul") {
  Net net;
  fuse(net.g, provider(1, {{GPUNN_OP_MATMUL, 0}}));
  CHECK(ops_of(net.g) == std::vector<int32_t>{GPUNN_OP_MATMUL, GPUNN_OP_BIAS_ADD, GPUNN_OP_RELU});
}

TEST_CASE("an overlay's composite is taken over the base's parts") {
  Net net;
  fuse(net.g, provider(1, {{GPUNN_OP_MATMUL_BIAS_ACTIVATION, 0}}));
  CHECK(ops_of(net.g) == std::vector<int32_t>{GPUNN_OP_MATMUL_BIAS_ACTIVATION});
}

TEST_CASE("a composite that is served channels-last alone is taken where layouts are chosen later") {
  Graph g;
  const ValueId x = g.add_value("x", {DType::f32, {2, 3, 8, 8}}, Storage::data);
  const ValueId w = g.add_value("w", {DType::f32, {4, 3, 1, 1}}, Storage::parameters);
  const ValueId b = g.add_value("b", {DType::f32, {4}}, Storage::parameters);
  gpunn_conv2d_attrs attrs{};
  attrs.stride[0] = attrs.stride[1] = attrs.dilation[0] = attrs.dilation[1] = attrs.groups = 1;
  const ValueId y = g.add1(GPUNN_OP_CONV2D, "conv", Attributes::of(attrs), {x, w});
  g.add1(GPUNN_OP_RELU, "relu", {}, {g.add1(GPUNN_OP_BIAS_ADD, "bias", {}, {y, b})});
  const Provider last_alone = [](const graph::OpSignature& signature) {
    const bool last = signature.outputs[0].layout == Layout::channels_last;
    return signature.op == GPUNN_OP_CONV2D_BIAS_ACTIVATION && !last ? -1 : 0;
  };
  Graph packed = g;
  fuse(packed, last_alone);
  CHECK(packed.nodes().size() == 3);
  fuse(g, last_alone, ImageLayouts::chosen_later);
  CHECK(ops_of(g) == std::vector<int32_t>{GPUNN_OP_CONV2D_BIAS_ACTIVATION});
}

TEST_CASE("relu backward takes the bias gradient along") {
  Graph g;
  const TensorType type{DType::f32, {4, 5}};
  const ValueId dy = g.add_value("dy", type, Storage::state);
  const ValueId y = g.add_value("y", type, Storage::state);
  const ValueId dx = g.add1(GPUNN_OP_RELU_BACKWARD, "relu.backward", {}, {dy, y});
  g.add1(GPUNN_OP_SCALE, "between", Attributes::of(gpunn_scale_attrs{.struct_size = 0, .factor = 2}), {dx});
  const ValueId db = g.add1(GPUNN_OP_BIAS_BACKWARD, "bias.backward", {}, {dx});
  fuse(g, provider(0));
  REQUIRE(ops_of(g) == std::vector<int32_t>{GPUNN_OP_BIAS_ACTIVATION_BACKWARD, GPUNN_OP_SCALE});
  CHECK(g.nodes()[0].outputs == std::vector<ValueId>{dx, db});
}

TEST_CASE("a composite that no plugin serves is decomposed") {
  Graph g;
  const ValueId x = g.add_value("x", {DType::f32, {4, 5}}, Storage::data);
  const ValueId label = g.add_value("label", {DType::i32, {4}}, Storage::data);
  const auto outputs = g.add(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, "loss", {}, {x, label});
  SECTION("not served") {
    decompose_unserved(g, provider(0, {{GPUNN_OP_SOFTMAX_CROSS_ENTROPY, -1}}));
    CHECK(ops_of(g) == std::vector<int32_t>{GPUNN_OP_LOG_SOFTMAX, GPUNN_OP_NLL_LOSS});
    CHECK(g.nodes()[1].outputs[0] == outputs[0]);
  }
  SECTION("served") {
    decompose_unserved(g, provider(0));
    CHECK(ops_of(g) == std::vector<int32_t>{GPUNN_OP_SOFTMAX_CROSS_ENTROPY});
  }
  SECTION("served, and a part that has an overlay needs another that no plugin serves") {
    decompose_unserved(g, provider(1, {{GPUNN_OP_LOG_SOFTMAX, 0}, {GPUNN_OP_NLL_LOSS, -1}}));
    CHECK(ops_of(g) == std::vector<int32_t>{GPUNN_OP_SOFTMAX_CROSS_ENTROPY});
  }
  SECTION("served, but a part has an overlay") {
    decompose_unserved(g, provider(1, {{GPUNN_OP_LOG_SOFTMAX, 0}}));
    CHECK(ops_of(g) == std::vector<int32_t>{GPUNN_OP_LOG_SOFTMAX, GPUNN_OP_NLL_LOSS});
  }
}
