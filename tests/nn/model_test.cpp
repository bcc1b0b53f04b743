#include "nn/model.hpp"

#include <gpunn/ops.h>

#include "catch.hpp"
#include "config/layer_table.hpp"
#include "nn/layers.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace nn_test;
using Ops = std::vector<int32_t>;

TEST_CASE("LeNet-5 has the parameters that it should have") {
  const auto parameters = nn::model_parameters(shipped("lenet_mnist"), {1, 28, 28});
  const std::vector<std::pair<std::string, Shape>> expected = {
      {"conv1.weight", {6, 1, 5, 5}}, {"conv1.bias", {6}},   {"conv2.weight", {16, 6, 5, 5}}, {"conv2.bias", {16}},
      {"fc1.weight", {120, 400}},     {"fc1.bias", {120}},   {"fc2.weight", {84, 120}},       {"fc2.bias", {84}},
      {"output.weight", {10, 84}},    {"output.bias", {10}},
  };
  REQUIRE(parameters.size() == expected.size());
  int64_t total = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(parameters[i].name == expected[i].first);
    CHECK(parameters[i].shape == expected[i].second);
    CHECK(parameters[i].decayed == (i % 2 == 0));
    total += element_count(parameters[i].shape);
  }
  CHECK(total == 61706);
  CHECK(parameters[2].fan_in == 150);
  CHECK(parameters[3].fan_in == 150);
  CHECK(parameters[4].fan_in == 400);
}

TEST_CASE("LeNet-5 is core ops in order") {
  const Built built(shipped("lenet_mnist"), {1, 28, 28}, true);
  CHECK(built.ops() == Ops{GPUNN_OP_CONV2D, GPUNN_OP_BIAS_ADD, GPUNN_OP_RELU, GPUNN_OP_MAX_POOL2D, GPUNN_OP_CONV2D,
                           GPUNN_OP_BIAS_ADD, GPUNN_OP_RELU, GPUNN_OP_MAX_POOL2D, GPUNN_OP_MATMUL, GPUNN_OP_BIAS_ADD,
                           GPUNN_OP_RELU, GPUNN_OP_MATMUL, GPUNN_OP_BIAS_ADD, GPUNN_OP_RELU, GPUNN_OP_MATMUL,
                           GPUNN_OP_BIAS_ADD});
  CHECK(to_string(built.graph.value(built.y).type) == "f32[4, 10]");
  CHECK(built.graph.nodes().front().name == "conv1");
  const auto matmul = built.graph.nodes()[8].attrs.as<gpunn_matmul_attrs>();
  CHECK((matmul.transpose_a == 0 && matmul.transpose_b == 1));
  const auto conv = built.graph.nodes()[0].attrs.as<gpunn_conv2d_attrs>();
  CHECK((conv.pad[0] == 2 && conv.pad[1] == 2 && conv.stride[0] == 1 && conv.groups == 1));
}

TEST_CASE("the MLP grows with its parameters") {
  const auto shapes = [](const std::vector<Override>& overrides) {
    std::string text;
    for (const auto& parameter : nn::model_parameters(shipped("mlp_mnist", overrides), {1, 28, 28})) {
      text += parameter.name + to_string(parameter.shape) + " ";
    }
    return text;
  };
  CHECK(shapes({}) == "hidden_1.weight[128, 784] hidden_1.bias[128] output.weight[10, 128] output.bias[10] ");
  CHECK(shapes({{"model.parameters.depth", "2"}, {"model.parameters.width", "32"}}) ==
        "hidden_1.weight[32, 784] hidden_1.bias[32] hidden_2.weight[32, 32] hidden_2.bias[32] output.weight[10, 32] "
        "output.bias[10] ");
  CHECK(shapes({{"model.parameters.depth", "0"}}) == "output.weight[10, 784] output.bias[10] ");
}

TEST_CASE("dropout is there in training alone, each with a stream of its own") {
  const ModelSpec model = model_of("dropout: {p: 0.25},\nrelu,\ndropout,\ndropout: {p: 0}");
  const Built training(model, {8}, true);
  REQUIRE(training.ops() == Ops{GPUNN_OP_DROPOUT, GPUNN_OP_RELU, GPUNN_OP_DROPOUT});
  const auto first = training.graph.nodes()[0].attrs.as<gpunn_dropout_attrs>();
  const auto second = training.graph.nodes()[2].attrs.as<gpunn_dropout_attrs>();
  CHECK(first.p == 0.25F);
  CHECK(first.seed == 5);
  CHECK(first.stream == uint64_t{1} << 32);
  CHECK(second.p == 0.5F);
  CHECK(second.stream == (uint64_t{1} << 32) + 2);
  CHECK(training.graph.nodes()[0].inputs == std::vector<graph::ValueId>{training.x, training.step});
  CHECK(Built(model, {8}, false).ops() == Ops{GPUNN_OP_RELU});
}

TEST_CASE("convolution options reach the op") {
  const Built built(model_of("conv2d: {filters: 4, kernel: [3, 5], stride: [2, 1], padding: same, dilation: [1, 2], "
                             "groups: 2, bias: false, activation: relu}"),
                    {2, 9, 11}, true);
  CHECK(built.ops() == Ops{GPUNN_OP_CONV2D, GPUNN_OP_RELU});
  const auto attrs = built.graph.nodes()[0].attrs.as<gpunn_conv2d_attrs>();
  CHECK((attrs.stride[0] == 2 && attrs.stride[1] == 1));
  CHECK((attrs.pad[0] == 1 && attrs.pad[1] == 4));
  CHECK((attrs.dilation[0] == 1 && attrs.dilation[1] == 2));
  CHECK(attrs.groups == 2);
  CHECK(to_string(built.graph.value(built.y).type) == "f32[4, 4, 5, 11]");
  REQUIRE(built.parameters.size() == 1);
  CHECK(built.parameters[0].shape == Shape{4, 1, 3, 5});
  CHECK(built.parameters[0].fan_in == 15);
}

TEST_CASE("a pool steps by its window unless told otherwise") {
  const auto shape = [](const std::string& layers, const Shape& sample) {
    const Built built(model_of(layers), sample, true);
    return to_string(built.graph.value(built.y).type.shape);
  };
  CHECK(shape("max_pool: {window: [3, 2]}", {1, 9, 8}) == "[4, 1, 3, 4]");
  CHECK(shape("max_pool: {window: 3, stride: 2, padding: 1}", {1, 9, 8}) == "[4, 1, 5, 4]");
  CHECK(shape("flatten", {3, 2, 2}) == "[4, 12]");
  CHECK(shape("relu: {},\nsoftmax,\nrelu", {7}) == "[4, 7]");
}

TEST_CASE("activations are layers, and what conv2d and linear end in") {
  const Built built(model_of("linear: {units: 5, bias: false, activation: tanh},\nleaky_relu: {slope: 0.2},\n"
                             "gelu: {approximate: tanh},\ngelu,\nsigmoid,\nsilu"),
                    {7}, true);
  CHECK(built.ops() == Ops{GPUNN_OP_MATMUL, GPUNN_OP_TANH, GPUNN_OP_LEAKY_RELU, GPUNN_OP_GELU, GPUNN_OP_GELU,
                           GPUNN_OP_SIGMOID, GPUNN_OP_SILU});
  CHECK(built.graph.nodes()[2].attrs.as<gpunn_leaky_relu_attrs>().slope == 0.2F);
  CHECK(built.graph.nodes()[3].attrs.as<gpunn_gelu_attrs>().tanh == 1);
  CHECK(built.graph.nodes()[4].attrs.as<gpunn_gelu_attrs>().tanh == 0);
  for (const std::string name : {"relu", "sigmoid", "tanh", "gelu", "silu"}) {
    const Built dense(model_of("linear: {units: 3, activation: " + name + "}"), {2}, true);
    REQUIRE(dense.ops().size() == 3);
    CHECK(dense.ops().back() == Built(model_of(name), {2}, true).ops().front());
  }
}

TEST_CASE("flatten is no op") {
  const Built built(model_of("flatten"), {3, 2, 2}, true);
  CHECK(built.graph.nodes().empty());
  CHECK(built.graph.root(built.y) == built.x);
}

TEST_CASE("branches are built as data flows, parameters listed as the file has them") {
  const ModelSpec model = model_of(
      "linear: {name: late, units: 3, from: early},\nlinear: {name: early, units: 4, from: input},\n"
      "linear: {name: side, units: 3, from: early},\nadd: {from: [late, side]}");
  const Built built(model, {5}, true);
  CHECK(built.parameters[0].name == "late.weight");
  CHECK(built.parameters[0].shape == Shape{3, 4});
  CHECK(built.parameters[2].name == "early.weight");
  CHECK(built.parameters[2].shape == Shape{4, 5});
  CHECK(built.graph.nodes()[0].name == "early");
  CHECK(built.ops().back() == GPUNN_OP_ADD);
}

TEST_CASE("wrong parameters are refused") {
  graph::Graph graph;
  const auto x = graph.add_value("x", {DType::f32, {2, 3}}, graph::Storage::arena);
  const auto w = graph.add_value("w", {DType::f32, {4, 3}}, graph::Storage::parameters);
  const auto b = graph.add_value("b", {DType::f32, {5}}, graph::Storage::parameters);
  const ModelSpec model = model_of("linear: {units: 4}");
  CHECK_THROWS_WITH(nn::build_forward(graph, model, x, {w}, {}), Contains("has 2 parameters, 1 were given"));
  CHECK_THROWS_WITH(nn::build_forward(graph, model, x, {w, b}, {}),
                    Contains("the parameter linear1.bias must be f32[4], is f32[5]"));
}

TEST_CASE("each layer of the table can be built") {
  for (const std::string& name : config::layer_type_names()) CHECK(nn::layer_function(name) != nullptr);
}
