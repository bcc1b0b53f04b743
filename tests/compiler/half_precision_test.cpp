#include "compiler/half_precision.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <vector>

#include "catch.hpp"
#include "compiler/autodiff.hpp"
#include "compiler/decompose.hpp"

using namespace gpunn;
using namespace gpunn::compiler;
using namespace gpunn::graph;

namespace {

// A convolution, a batch norm, a ReLU, a dense layer on the flattened images and a layer norm, for 8 images of 4x4.
struct MixedNet {
  Graph g;
  ValueId x = g.add_value("x", {DType::f32, {8, 1, 4, 4}}, Storage::data);
  ValueId filter = parameter("filter", {2, 1, 3, 3}), bias = parameter("bias", {2});
  ValueId gamma = parameter("gamma", {2}), beta = parameter("beta", {2});
  ValueId running_mean = parameter("mean", {2}), running_var = parameter("var", {2});
  ValueId weight = parameter("weight", {3, 8});
  ValueId row_gamma = parameter("row_gamma", {3}), row_beta = parameter("row_beta", {3});
  ValueId image = g.add1(GPUNN_OP_CONV2D, "conv", Attributes::of(conv()), {x, filter});
  ValueId biased = g.add1(GPUNN_OP_BIAS_ADD, "conv", {}, {image, bias});
  std::vector<ValueId> norm = g.add(GPUNN_OP_BATCH_NORM, "norm", Attributes::of(norm_attrs()),
                                    {biased, gamma, beta, running_mean, running_var});
  ValueId relu = g.add1(GPUNN_OP_RELU, "relu", {}, {norm[0]});
  ValueId flat = g.add_view("flat", relu, {DType::f32, {8, 8}});
  ValueId product =
      g.add1(GPUNN_OP_MATMUL, "linear",
             Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 1}), {flat, weight});
  std::vector<ValueId> rows =
      g.add(GPUNN_OP_LAYER_NORM, "rows", Attributes::of(gpunn_layer_norm_attrs{.struct_size = 0, .epsilon = 1e-5F}),
            {product, row_gamma, row_beta});

  ValueId parameter(const char* name, Shape shape) {
    return g.add_value(name, {DType::f32, std::move(shape)}, Storage::parameters);
  }
  static gpunn_batch_norm_attrs norm_attrs() {
    gpunn_batch_norm_attrs attrs{};
    attrs.epsilon = 1e-5F;
    attrs.momentum = 0.1F;
    return attrs;
  }
  static gpunn_conv2d_attrs conv() {
    gpunn_conv2d_attrs attrs{};
    for (int i = 0; i < 2; ++i) attrs.stride[i] = attrs.dilation[i] = 1;
    attrs.groups = 1;
    return attrs;
  }
  DType type(ValueId id) const { return g.value(id).type.dtype; }
  // That reads the value.
  const Node& copy_reading(ValueId id) const {
    const auto found = std::ranges::find_if(
        g.nodes(), [&](const Node& node) { return node.op == GPUNN_OP_COPY && node.inputs[0] == id; });
    REQUIRE(found != g.nodes().end());
    return *found;
  }
};

int count_of(const Graph& g, int32_t op) {
  return static_cast<int>(std::ranges::count_if(g.nodes(), [op](const Node& node) { return node.op == op; }));
}

bool has_half(const OpSignature& signature) {
  const auto half = [](const TensorType& type) { return is_half(type.dtype); };
  return std::ranges::any_of(signature.inputs, half) || std::ranges::any_of(signature.outputs, half);
}

// Half precision at one place of the chain, f32 and copies at others.
Provider half_provider(int half, int full = 0) {
  return [=](const OpSignature& signature) {
    if (signature.op == GPUNN_OP_COPY) return 1;
    return has_half(signature) ? half : full;
  };
}

}  // namespace

TEST_CASE("products and what follows them are of half precision, statistics and parameters are not") {
  const DType half = GENERATE(DType::bf16, DType::f16);
  MixedNet net;
  const ValueId result = use_half_precision(net.g, 0, half, net.rows[0]);
  for (const ValueId id : {net.image, net.biased, net.norm[0], net.relu, net.flat, net.product, net.rows[0]}) {
    CHECK(net.type(id) == half);
  }
  for (const ValueId id : {net.norm[1], net.norm[2], net.bias, net.gamma, net.filter, net.weight, net.rows[1],
                           net.rows[2], net.row_gamma}) {
    CHECK(net.type(id) == DType::f32);
  }
  CHECK(result == net.copy_reading(net.rows[0]).outputs[0]);
  CHECK(net.type(result) == DType::f32);
  CHECK(net.type(net.copy_reading(net.filter).outputs[0]) == half);
  CHECK(count_of(net.g, GPUNN_OP_COPY) == 4);  // x, filter, weight, the result
}

TEST_CASE("what is read next is f32, and a value is converted once") {
  MixedNet net;
  net.g.add1(GPUNN_OP_SOFTMAX, "softmax", {}, {net.product});
  const ValueId result = use_half_precision(net.g, 0, DType::bf16, net.product);
  CHECK(net.type(result) == DType::f32);
  CHECK(net.g.value(result).type.shape == Shape{8, 3});
  CHECK(count_of(net.g, GPUNN_OP_COPY) == 4);
}

TEST_CASE("attention is of half precision, what it keeps of the scores is not") {
  Graph g;
  const auto rows = [&](const char* name) { return g.add_value(name, {DType::f32, {2, 5, 3, 4}}, Storage::data); };
  const ValueId q = rows("q"), k = rows("k"), v = rows("v");
  const std::vector<ValueId> made =
      g.add(GPUNN_OP_ATTENTION, "attention", Attributes::of(gpunn_attention_attrs{.struct_size = 0, .scale = 0.5F}),
            {q, k, v});
  const ValueId result = use_half_precision(g, 0, DType::bf16, made[0]);
  CHECK(g.value(made[0]).type.dtype == DType::bf16);
  CHECK(g.value(made[1]).type == TensorType{DType::f32, {2, 3, 5}});
  CHECK(g.value(result).type.dtype == DType::f32);
  CHECK(count_of(g, GPUNN_OP_COPY) == 4);  // q, k, v and the result
}

TEST_CASE("nodes before the first stay as they are") {
  MixedNet net;
  use_half_precision(net.g, net.g.nodes().size(), DType::bf16, net.rows[0]);
  CHECK(count_of(net.g, GPUNN_OP_COPY) == 0);
  CHECK(net.type(net.image) == DType::f32);
}

TEST_CASE("gradients of parameters are f32, and those between the layers of half precision") {
  MixedNet net;
  const ValueId logits = use_half_precision(net.g, 0, DType::bf16, net.rows[0]);
  const ValueId label = net.g.add_value("label", {DType::i32, {8}}, Storage::data);
  const ValueId rows = net.g.add_value("count", {DType::i32, {}}, Storage::data);
  const ValueId losses = net.g.add(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, "loss", {}, {logits, label}).front();
  const ValueId loss = net.g.add1(GPUNN_OP_MEAN_ROWS, "mean", {}, {losses, rows});
  const std::vector<ValueId> targets{net.filter, net.bias, net.gamma, net.beta, net.weight, net.row_gamma};
  const std::vector<ValueId> gradients = add_gradients(net.g, loss, targets);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    CHECK(net.g.value(gradients[i]).type == net.g.value(targets[i]).type);
  }
  for (const Node& node : net.g.nodes()) {
    if (node.op != GPUNN_OP_BATCH_NORM_BACKWARD && node.op != GPUNN_OP_RELU_BACKWARD) continue;
    CHECK(net.type(node.inputs[0]) == DType::bf16);
    CHECK(net.type(node.outputs[0]) == DType::bf16);
  }
}

TEST_CASE("a gradient of half precision flows through a view of a value of f32") {
  Graph g;
  const ValueId x = g.add_value("x", {DType::f32, {4, 2, 3}}, Storage::parameters);
  const ValueId weight = g.add_value("weight", {DType::f32, {5, 6}}, Storage::parameters);
  const ValueId y = g.add1(GPUNN_OP_RELU, "relu", {}, {x});  // of f32, as what is in front of the first product
  const ValueId flat = g.add_view("flat", y, {DType::f32, {4, 6}});
  const ValueId product =
      g.add1(GPUNN_OP_MATMUL, "linear",
             Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 1}), {flat, weight});
  const ValueId result = use_half_precision(g, 0, DType::bf16, product);
  REQUIRE(g.value(y).type.dtype == DType::f32);
  const ValueId target = g.add_value("target", {DType::f32, {4, 5}}, Storage::data);
  const ValueId rows = g.add_value("count", {DType::i32, {}}, Storage::data);
  const ValueId loss =
      g.add1(GPUNN_OP_MEAN_ROWS, "mean", {}, {g.add1(GPUNN_OP_MSE_LOSS, "loss", {}, {result, target}), rows});
  const ValueId gradient = add_gradients(g, loss, {x}).front();
  CHECK(g.value(gradient).type == g.value(x).type);
}

TEST_CASE("a plugin without half precision runs its kernels between copies") {
  MixedNet net;
  use_half_precision(net.g, 0, DType::bf16, net.rows[0]);
  decompose_unserved(net.g, half_provider(-1));
  for (const Node& node : net.g.nodes()) {
    if (node.op != GPUNN_OP_COPY) CHECK_FALSE(has_half(net.g.signature(node)));
  }
  for (const int32_t op : {GPUNN_OP_CONV2D, GPUNN_OP_BATCH_NORM, GPUNN_OP_RELU, GPUNN_OP_MATMUL}) {
    CHECK(count_of(net.g, op) == 1);
  }
  // Of what is written between the layers each is still rounded.
  CHECK(net.type(net.relu) == DType::bf16);
}

TEST_CASE("a kernel with half precision is hidden by none that is lower in the chain, but by one that is higher") {
  const int half = GENERATE(0, 1, 2);
  MixedNet net;
  use_half_precision(net.g, 0, DType::bf16, net.rows[0]);
  const std::size_t nodes = net.g.nodes().size();
  decompose_unserved(net.g, half_provider(half, 1));
  CHECK((net.g.nodes().size() == nodes) == (half <= 1));
}

TEST_CASE("without copies of half precision an op is left as it is, for the error to name") {
  MixedNet net;
  use_half_precision(net.g, 0, DType::bf16, net.rows[0]);
  const std::size_t nodes = net.g.nodes().size();
  decompose_unserved(net.g, [](const OpSignature& signature) { return has_half(signature) ? -1 : 0; });
  CHECK(net.g.nodes().size() == nodes);
}

TEST_CASE("a conversion that only a discarded decomposition read is made again for the next reader") {
  Graph g;
  const auto rows = [&](const char* name) { return g.add_value(name, {DType::bf16, {2, 5, 3, 4}}, Storage::arena); };
  const ValueId q = rows("q"), k = rows("k"), v = rows("v");
  const auto attrs = Attributes::of(gpunn_attention_attrs{.struct_size = 0, .scale = 0.5F});
  g.add(GPUNN_OP_ATTENTION, "attention", attrs, {q, k, v});
  g.add1(GPUNN_OP_GELU, "gelu", Attributes::of(gpunn_gelu_attrs{}), {q});
  // Parts of attention, and GELU, are served in f32 at the height at which attention itself is.
  decompose_unserved(g, [](const OpSignature& signature) {
    if (signature.op == GPUNN_OP_COPY || signature.op == GPUNN_OP_ATTENTION) return 0;
    return has_half(signature) ? 1 : 0;
  });
  CHECK(count_of(g, GPUNN_OP_ATTENTION) == 1);
  CHECK(count_of(g, GPUNN_OP_TRANSPOSE) == 0);
  const auto gelu = std::ranges::find(g.nodes(), GPUNN_OP_GELU, &Node::op);
  REQUIRE(gelu != g.nodes().end());
  const ValueId wide = gelu->inputs[0];
  CHECK(g.value(wide).type.dtype == DType::f32);
  CHECK(std::any_of(g.nodes().begin(), gelu,
                    [&](const Node& node) { return std::ranges::count(node.outputs, wide) == 1; }));
}
