#include "compiler/layout.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace gpunn;
using namespace gpunn::compiler;
using namespace gpunn::graph;

namespace {

gpunn_conv2d_attrs conv() {
  gpunn_conv2d_attrs attrs{};
  for (int i = 0; i < 2; ++i) attrs.stride[i] = attrs.dilation[i] = attrs.pad[i] = 1;
  attrs.groups = 1;
  return attrs;
}

// Two convolutions with a ReLU between them, in bf16, and what is flattened behind them.
struct ConvNet {
  Graph g;
  ValueId x = g.add_value("x", {DType::f32, {8, 3, 4, 4}}, Storage::data);
  ValueId filter = g.add_value("filter", {DType::f32, {6, 3, 3, 3}}, Storage::parameters);
  ValueId filter2 = g.add_value("filter2", {DType::f32, {6, 6, 3, 3}}, Storage::parameters);
  ValueId x_half = half_of(x), filter_half = half_of(filter), filter2_half = half_of(filter2);
  ValueId image = g.add1(GPUNN_OP_CONV2D, "conv", Attributes::of(conv()), {x_half, filter_half});
  ValueId relu = g.add1(GPUNN_OP_RELU, "relu", {}, {image});
  ValueId image2 = g.add1(GPUNN_OP_CONV2D, "conv2", Attributes::of(conv()), {relu, filter2_half});
  ValueId flat = g.add_view("flat", image2, {DType::bf16, {8, 96}});
  ValueId end = g.add1(GPUNN_OP_RELU, "end", {}, {flat});

  ValueId half_of(ValueId id) {
    const ValueId half = g.add_value(g.value(id).name + ".bf16", {DType::bf16, g.value(id).type.shape}, Storage::arena);
    g.add_into(GPUNN_OP_COPY, g.value(half).name, {}, {id}, {half});
    return half;
  }
  Layout layout(ValueId id) const { return g.value(id).type.layout; }
  const Node& node(int32_t op, std::size_t which = 0) const {
    for (const Node& one : g.nodes()) {
      if (one.op == op && which-- == 0) return one;
    }
    FAIL("there is no such node");
    return g.nodes().front();
  }
};

bool is_channels_last(const OpSignature& signature) {
  const auto last = [](const TensorType& type) { return type.layout == Layout::channels_last; };
  return std::ranges::any_of(signature.inputs, last) || std::ranges::any_of(signature.outputs, last);
}

// Likes channels-last convolutions, and takes other ops in either layout.
Offer likes_channels_last(const OpSignature& signature) {
  return {0, signature.op == GPUNN_OP_CONV2D && is_channels_last(signature) ? 2 : 1};
}

std::size_t copies(const Graph& g) {
  return static_cast<std::size_t>(
      std::ranges::count_if(g.nodes(), [](const Node& node) { return node.op == GPUNN_OP_COPY; }));
}

}  // namespace

TEST_CASE("images lie channels-last where a kernel likes it, and stay so", "[compiler][layout]") {
  ConvNet net;
  choose_layouts(net.g, likes_channels_last);
  CHECK(net.layout(net.image) == Layout::channels_last);
  CHECK(net.layout(net.relu) == Layout::channels_last);
  const Node& first = net.node(GPUNN_OP_CONV2D, 0);
  const Node& second = net.node(GPUNN_OP_CONV2D, 1);
  CHECK(second.inputs[0] == net.relu);
  for (const Node* node : {&first, &second}) {
    for (const TensorType& type : net.g.signature(*node).inputs) CHECK(type.layout == Layout::channels_last);
  }
}

TEST_CASE("a conversion to half precision changes the layout too", "[compiler][layout]") {
  ConvNet net;
  choose_layouts(net.g, likes_channels_last);
  // Of x and of each filter one copy, from f32 and packed; and one of what is flattened.
  CHECK(copies(net.g) == 4);
  const ValueId input = net.node(GPUNN_OP_CONV2D).inputs[0];
  const auto made = std::ranges::find_if(net.g.nodes(), [&](const Node& node) { return node.outputs[0] == input; });
  REQUIRE(made != net.g.nodes().end());
  CHECK(made->inputs[0] == net.x);
}

TEST_CASE("what has a view stays packed", "[compiler][layout]") {
  ConvNet net;
  choose_layouts(net.g, likes_channels_last);
  CHECK(net.layout(net.image2) == Layout::packed);
  const Node& second = net.node(GPUNN_OP_CONV2D, 1);
  CHECK(second.outputs[0] != net.image2);
  CHECK(net.layout(second.outputs[0]) == Layout::channels_last);
  const Node& last = net.g.nodes().back();
  CHECK(last.inputs[0] == net.flat);
}

TEST_CASE("nothing changes where channels-last images are not liked better", "[compiler][layout]") {
  const std::vector<Offers> indifferent{[](const OpSignature&) {
                                          return Offer{0, 1};
                                        },
                                        [](const OpSignature& signature) {
                                          return is_channels_last(signature) ? Offer{} : Offer{0, 1};
                                        },
                                        [](const OpSignature& signature) {
                                          return is_channels_last(signature) ? Offer{1, 3} : Offer{0, 1};
                                        }};
  for (const Offers& offers : indifferent) {
    ConvNet net;
    const std::size_t nodes = net.g.nodes().size();
    choose_layouts(net.g, offers);
    CHECK(net.g.nodes().size() == nodes);
    CHECK(std::ranges::none_of(net.g.values(),
                               [](const Value& value) { return value.type.layout == Layout::channels_last; }));
  }
}

TEST_CASE("an op without a kernel for channels-last images gets packed ones", "[compiler][layout]") {
  ConvNet net;
  choose_layouts(net.g, [](const OpSignature& signature) {
    return signature.op == GPUNN_OP_RELU && is_channels_last(signature) ? Offer{} : likes_channels_last(signature);
  });
  const Node& relu = net.node(GPUNN_OP_RELU);
  CHECK(net.layout(net.image) == Layout::channels_last);
  CHECK(relu.inputs[0] != net.image);
  CHECK(net.layout(relu.inputs[0]) == Layout::packed);
  CHECK(net.layout(net.relu) == Layout::packed);
  CHECK(net.layout(net.node(GPUNN_OP_CONV2D, 1).inputs[0]) == Layout::channels_last);
}

TEST_CASE("measured times of kernels and copies are weighed against each other", "[compiler][layout]") {
  // Of the images' chain x, conv, relu, conv2 both convolutions are faster channels-last. Two copies would be needed
  // beside those that convert to half precision: none of them in front, one behind.
  double gain = 0, copy = 0;
  const Offers offers = [&](const OpSignature& signature) -> Offer {
    const bool last = is_channels_last(signature);
    if (signature.op == GPUNN_OP_CONV2D) return {0, 1, last ? 20e-6 - gain : 20e-6};
    return {0, 1, signature.op == GPUNN_OP_COPY ? copy : 0};
  };
  const auto turned = [&] {
    ConvNet net;
    choose_layouts(net.g, offers);
    const bool first = is_channels_last(net.g.signature(net.node(GPUNN_OP_CONV2D, 0)));
    CHECK(is_channels_last(net.g.signature(net.node(GPUNN_OP_CONV2D, 1))) == first);
    CHECK(net.layout(net.relu) == (first ? Layout::channels_last : Layout::packed));
    CHECK(copies(net.g) == (first ? 4 : 3));
    return first;
  };
  gain = 2e-6;
  copy = 5e-6;
  CHECK_FALSE(turned());
  copy = 3e-6;
  CHECK(turned());
  gain = -2e-6;
  CHECK_FALSE(turned());
}

TEST_CASE("a gradient turns images that its forward pass left packed only if it gains more than copies take",
          "[compiler][layout]") {
  Graph g;
  const ValueId x = g.add_value("x", {DType::f32, {8, 6, 4, 4}}, Storage::data);
  const ValueId filter = g.add_value("filter", {DType::f32, {6, 6, 3, 3}}, Storage::parameters);
  const ValueId seen = g.add1(GPUNN_OP_RELU, "seen", {}, {x});
  const ValueId image = g.add1(GPUNN_OP_CONV2D, "conv", Attributes::of(conv()), {seen, filter});
  const ValueId gradient = g.add1(GPUNN_OP_RELU_BACKWARD, "gradient", {}, {image, image});
  const ValueId of_filter = g.add_value("of_filter", {DType::f32, {6, 6, 3, 3}}, Storage::gradients);
  gpunn_conv2d_attrs backward = conv();
  backward.filter_size[0] = backward.filter_size[1] = 3;
  g.add_into(GPUNN_OP_CONV2D_BACKWARD_FILTER, "backward", Attributes::of(backward), {gradient, seen}, {of_filter});
  double gain = 0;
  const Offers offers = [&](const OpSignature& signature) -> Offer {
    if (signature.op == GPUNN_OP_COPY) return {0, 1, 4e-6};
    if (signature.op == GPUNN_OP_CONV2D_BACKWARD_FILTER) {
      return {0, 1, is_channels_last(signature) ? 20e-6 - gain : 20e-6};
    }
    return {0, 1, signature.op == GPUNN_OP_CONV2D ? 20e-6 : 0};
  };
  const auto copies_with = [&](double seconds) {
    gain = seconds;
    Graph copy = g;
    choose_layouts(copy, offers);
    return copies(copy);
  };
  CHECK(copies_with(7e-6) == 0);
  // x and the filter are turned once; the gradient of the filter is turned back.
  CHECK(copies_with(13e-6) == 3);
}

TEST_CASE("one number beside images, and conversions to another dtype, leave channels-last images as they are",
          "[compiler][layout]") {
  Graph g;
  const ValueId x = g.add_value("x", {DType::bf16, {8, 3, 4, 4}}, Storage::data);
  const ValueId filter = g.add_value("filter", {DType::bf16, {6, 3, 3, 3}}, Storage::parameters);
  const ValueId half = g.add_value("half", {DType::f32, {}}, Storage::data);
  const ValueId image = g.add1(GPUNN_OP_CONV2D, "conv", Attributes::of(conv()), {x, filter});
  const ValueId wide = g.add_value("wide", {DType::f32, {8, 6, 4, 4}}, Storage::arena);
  g.add_into(GPUNN_OP_COPY, "wide", {}, {image}, {wide});
  const ValueId scaled = g.add1(GPUNN_OP_MUL, "scaled", {}, {wide, half});
  const ValueId back = g.add_value("back", {DType::bf16, {8, 6, 4, 4}}, Storage::arena);
  g.add_into(GPUNN_OP_COPY, "back", {}, {scaled}, {back});
  const ValueId filter2 = g.add_value("filter2", {DType::bf16, {6, 6, 3, 3}}, Storage::parameters);
  g.add1(GPUNN_OP_CONV2D, "conv2", Attributes::of(conv()), {back, filter2});
  choose_layouts(g, likes_channels_last);
  for (const ValueId id : {image, wide, scaled, back}) CHECK(g.value(id).type.layout == Layout::channels_last);
  CHECK(copies(g) == 5);  // those two, and of x and the filters
}

TEST_CASE("a copy is not made of what was written since", "[compiler][layout]") {
  Graph g;
  const ValueId w = g.add_value("w", {DType::f32, {6, 3, 3, 3}}, Storage::parameters);
  const ValueId x = g.add_value("x", {DType::f32, {8, 3, 4, 4}}, Storage::data);
  const ValueId kept = g.add_value("kept", {DType::f32, {6, 3, 3, 3}}, Storage::arena);
  g.add_into(GPUNN_OP_COPY, "kept", {}, {w}, {kept});
  g.add_into(GPUNN_OP_RELU, "update", {}, {w}, {w});
  g.add(GPUNN_OP_CONV2D, "before", Attributes::of(conv()), {x, kept});
  g.add(GPUNN_OP_CONV2D, "after", Attributes::of(conv()), {x, w});
  choose_layouts(g, likes_channels_last);
  const auto made_of = [&](const char* name) {
    const auto node = std::ranges::find(g.nodes(), name, &Node::name);
    REQUIRE(node != g.nodes().end());
    const ValueId filter = node->inputs[1];
    const auto made = std::ranges::find_if(g.nodes(), [&](const Node& one) { return one.outputs[0] == filter; });
    REQUIRE(made != g.nodes().end());
    return made->inputs[0];
  };
  CHECK(made_of("before") == kept);
  CHECK(made_of("after") == w);
}
