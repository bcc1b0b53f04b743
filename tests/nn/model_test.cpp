#include "nn/model.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

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

TEST_CASE("padding that differs by side is an op of its own") {
  const auto built = [](const std::string& layer, const Ops& ops) {
    const Built made(model_of(layer), {2, 6, 8}, true);
    CHECK(made.ops() == ops);
    return to_string(made.graph.value(made.y).type.shape);
  };
  const std::string conv = "conv2d: {filters: 3, kernel: 4, bias: false, padding: ";
  CHECK(built(conv + "[0, 1, 2, 3]}", {GPUNN_OP_PAD, GPUNN_OP_CONV2D}) == "[4, 3, 4, 10]");
  CHECK(built(conv + "[1, 1, 2, 2]}", {GPUNN_OP_CONV2D}) == "[4, 3, 5, 9]");
  CHECK(built(conv + "same}", {GPUNN_OP_PAD, GPUNN_OP_CONV2D}) == "[4, 3, 6, 8]");
  CHECK(built("max_pool: {window: 2, padding: [0, 1, 0, 0]}", {GPUNN_OP_FILL, GPUNN_OP_CONCAT, GPUNN_OP_MAX_POOL2D}) ==
        "[4, 2, 3, 4]");
  CHECK(built("max_pool: {window: 2, padding: 1}", {GPUNN_OP_MAX_POOL2D}) == "[4, 2, 4, 5]");
  CHECK(built("avg_pool: {window: 3, stride: 1, padding: 2}", {GPUNN_OP_PAD, GPUNN_OP_AVG_POOL2D}) == "[4, 2, 8, 10]");
  CHECK(built("avg_pool: {window: 2, padding: [0, 0, 1, 0], count_padding: false}",
              {GPUNN_OP_PAD, GPUNN_OP_AVG_POOL2D, GPUNN_OP_FILL, GPUNN_OP_PAD, GPUNN_OP_AVG_POOL2D, GPUNN_OP_DIV}) ==
        "[4, 2, 3, 4]");
  CHECK(built("conv2d_transpose: {filters: 3, kernel: 3, bias: false, padding: [0, 2, 1, 1]}",
              {GPUNN_OP_CONV2D_BACKWARD_DATA, GPUNN_OP_SLICE, GPUNN_OP_SLICE}) == "[4, 3, 6, 8]");
}

TEST_CASE("attention has PyTorch's parameters, and drops weights in training alone") {
  const ModelSpec model = model_of("multi_head_attention: {name: a, heads: 3, dropout: 0.25}");
  const Built training(model, {5, 6}, true), inference(model, {5, 6}, false);
  std::string found;
  for (const nn::Parameter& p : training.parameters) {
    found += p.name + to_string(p.shape) + (p.decayed ? " decayed, " : ", ");
    CHECK(p.layer == "a");
  }
  CHECK(found ==
        "a.in_proj_weight[18, 6] decayed, a.in_proj_bias[18], a.out_proj.weight[6, 6] decayed, a.out_proj.bias[6], ");
  CHECK(training.parameters[0].deviation == Approx(std::sqrt(2.0 / 24)));  // Glorot's
  CHECK(std::ranges::count(training.ops(), GPUNN_OP_DROPOUT) == 1);
  CHECK(std::ranges::count(inference.ops(), GPUNN_OP_DROPOUT) == 0);
  CHECK(std::ranges::count(training.ops(), GPUNN_OP_BATCH_MATMUL) == 2);
  CHECK(std::ranges::count(training.ops(), GPUNN_OP_ATTENTION) == 0);
  CHECK(std::ranges::count(inference.ops(), GPUNN_OP_ATTENTION) == 1);
  CHECK(to_string(training.graph.value(training.y).type.shape) == "[4, 5, 6]");
}

TEST_CASE("a transposed convolution is a convolution's gradient") {
  const Built built(
      model_of("conv2d_transpose: {filters: 4, kernel: [3, 4], stride: 2, padding: 1, output_padding: [1, "
               "0], groups: 2, dilation: [2, 1]}"),
      {6, 5, 7}, true);
  CHECK(built.ops() == Ops{GPUNN_OP_CONV2D_BACKWARD_DATA, GPUNN_OP_BIAS_ADD});
  // (5 - 1) * 2 - 2 + 2 * 2 + 1 + 1, (7 - 1) * 2 - 2 + 3 + 1
  CHECK(to_string(built.graph.value(built.y).type) == "f32[4, 4, 12, 14]");
  REQUIRE(built.parameters.size() == 2);
  CHECK(built.parameters[0].shape == Shape{6, 2, 3, 4});
  CHECK(built.parameters[0].fan_in == 24);
  CHECK(built.parameters[1].shape == Shape{4});
  const Built drawn(model_of("conv2d_transpose: {filters: 4, kernel: 3, init: kaiming_normal}"), {6, 5, 7}, true);
  CHECK(drawn.parameters[0].init == nn::InitKind::normal);
  CHECK(drawn.parameters[0].deviation == Approx(std::sqrt(2.0 / 54)));
}

TEST_CASE("weights are drawn from what init says") {
  const auto drawn = [](const std::string& init) {
    const Built built(model_of("conv2d: {filters: 6, kernel: [3, 5], init: " + init +
                               "},\nflatten,\nlinear: {units: 7, init: " + init + "}"),
                      {4, 3, 5}, true);
    return built.parameters;
  };
  const auto usual = drawn("default");
  CHECK(usual[0].init == nn::InitKind::kaiming_uniform);
  CHECK(usual[1].init == nn::InitKind::bias_uniform);
  const auto he = drawn("kaiming_normal");
  CHECK(he[0].init == nn::InitKind::normal);
  CHECK(he[0].deviation == Approx(std::sqrt(2.0 / (6 * 15))));
  CHECK(he[1].init == nn::InitKind::zeros);
  CHECK(he[2].deviation == Approx(std::sqrt(2.0 / 7)));
  const auto glorot = drawn("xavier_uniform");
  CHECK(glorot[0].init == nn::InitKind::uniform);
  CHECK(glorot[0].deviation == Approx(std::sqrt(2.0 / (4 * 15 + 6 * 15))));
  CHECK(glorot[2].deviation == Approx(std::sqrt(2.0 / (6 + 7))));
}

TEST_CASE("a pool steps by its window unless told otherwise") {
  const auto shape = [](const std::string& layers, const Shape& sample) {
    const Built built(model_of(layers), sample, true);
    return to_string(built.graph.value(built.y).type.shape);
  };
  CHECK(shape("max_pool: {window: [3, 2]}", {1, 9, 8}) == "[4, 1, 3, 4]");
  CHECK(shape("max_pool: {window: 3, stride: 2, padding: 1}", {1, 9, 8}) == "[4, 1, 5, 4]");
  CHECK(shape("avg_pool: {window: [3, 2]}", {1, 9, 8}) == "[4, 1, 3, 4]");
  CHECK(shape("adaptive_avg_pool: {size: [3, 2]}", {2, 9, 8}) == "[4, 2, 3, 2]");
  CHECK(shape("global_avg_pool", {5, 9, 8}) == "[4, 5]");
  CHECK(shape("global_max_pool", {5, 9, 8}) == "[4, 5]");
  CHECK(shape("flatten", {3, 2, 2}) == "[4, 12]");
  CHECK(shape("relu: {},\nsoftmax,\nrelu", {7}) == "[4, 7]");
}

TEST_CASE("means of windows, of parts of an image and of the whole") {
  const auto attrs = [](const std::string& layer) {
    const Built built(model_of(layer), {2, 6, 8}, true);
    REQUIRE(built.ops() == Ops{GPUNN_OP_AVG_POOL2D});
    return built.graph.nodes()[0].attrs.as<gpunn_pool2d_attrs>();
  };
  const auto padded = attrs("avg_pool: {window: 3, stride: [2, 1], padding: [1, 0]}");
  CHECK((padded.stride[0] == 2 && padded.stride[1] == 1 && padded.pad[0] == 1 && padded.pad[1] == 0));
  CHECK(padded.count_padding == 1);
  CHECK(attrs("avg_pool: {window: 3, padding: 1, count_padding: false}").count_padding == 0);
  const auto part = attrs("adaptive_avg_pool: {size: [3, 2]}");
  CHECK((part.window[0] == 2 && part.window[1] == 4 && part.stride[0] == 2 && part.stride[1] == 4));
  const auto all = attrs("global_avg_pool");
  CHECK((all.window[0] == 6 && all.window[1] == 8));
  CHECK(Built(model_of("global_max_pool"), {2, 6, 8}, true).ops() == Ops{GPUNN_OP_MAX_POOL2D});
  const Built repeated(model_of("adaptive_avg_pool: {size: [3, 16]}"), {2, 6, 8}, true);
  REQUIRE(repeated.ops() == Ops{GPUNN_OP_AVG_POOL2D, GPUNN_OP_UPSAMPLE2D});
  const auto twice = repeated.graph.nodes()[1].attrs.as<gpunn_upsample2d_attrs>();
  CHECK((twice.factor[0] == 1 && twice.factor[1] == 2 && twice.mode == GPUNN_UPSAMPLE_NEAREST));
  CHECK(to_string(repeated.graph.value(repeated.y).type.shape) == "[4, 2, 3, 16]");
  const Built like(model_of("max_pool: {name: p, window: [3, 2]}, upsample: {from: [p, input], mode: bilinear}"),
                   {2, 6, 7}, true);
  CHECK(to_string(like.graph.value(like.y).type.shape) == "[4, 2, 6, 7]");
  const auto whole = std::ranges::find(like.graph.nodes(), GPUNN_OP_UPSAMPLE2D, &graph::Node::op);
  REQUIRE(whole != like.graph.nodes().end());
  CHECK(whole->attrs.as<gpunn_upsample2d_attrs>().factor[0] == 3);
  CHECK(whole->attrs.as<gpunn_upsample2d_attrs>().factor[1] == 1);
  const Built upsampled(model_of("upsample: {factor: [1, 3], mode: bilinear}"), {2, 6, 8}, true);
  CHECK(to_string(upsampled.graph.value(upsampled.y).type.shape) == "[4, 2, 6, 24]");
  CHECK(upsampled.graph.nodes()[0].attrs.as<gpunn_upsample2d_attrs>().mode == GPUNN_UPSAMPLE_BILINEAR);
  CHECK(Built(model_of("adaptive_avg_pool: {size: [6, 8]}"), {2, 6, 8}, true).ops().empty());
}

TEST_CASE("layers that only move numbers") {
  const auto built = [](const std::string& layers, const Shape& sample, const Ops& ops) {
    const Built made(model_of(layers), sample, true);
    CHECK(made.ops() == ops);
    return to_string(made.graph.value(made.y).type.shape);
  };
  CHECK(built("reshape: {shape: [-1, 4]}", {3, 2, 2}, {}) == "[4, 3, 4]");
  CHECK(built("reshape: {shape: -1}", {3, 2, 2}, {}) == "[4, 12]");
  CHECK(built("reshape: {shape: [2, 3, 2]}", {12}, {}) == "[4, 2, 3, 2]");
  CHECK(built("transpose: {permutation: [1, 2, 0]}", {3, 5, 7}, {GPUNN_OP_TRANSPOSE}) == "[4, 5, 7, 3]");
  CHECK(built("pad: {padding: 2}", {3, 5, 7}, {GPUNN_OP_PAD}) == "[4, 3, 9, 11]");
  CHECK(built("pad: {padding: [1, 2]}", {3, 5, 7}, {GPUNN_OP_PAD}) == "[4, 3, 7, 11]");
  CHECK(built("pad: {padding: [0, 1, 2, 3]}", {3, 5, 7}, {GPUNN_OP_PAD}) == "[4, 3, 6, 12]");
  CHECK(built("pixel_shuffle: {factor: 2}", {12, 5, 7}, {GPUNN_OP_TRANSPOSE}) == "[4, 3, 10, 14]");
  CHECK(built("relu: {name: a},\nsigmoid: {name: b, from: input},\nconcat: {from: [a, b, a]}", {3, 5, 7},
              {GPUNN_OP_RELU, GPUNN_OP_SIGMOID, GPUNN_OP_CONCAT}) == "[4, 9, 5, 7]");
  CHECK(built("log_softmax,\nrelu", {3}, {GPUNN_OP_LOG_SOFTMAX, GPUNN_OP_RELU}) == "[4, 3]");
  const Built padded(model_of("pad: {padding: [0, 1, 2, 3]}"), {3, 5, 7}, true);
  const auto attrs = padded.graph.nodes()[0].attrs.as<gpunn_pad_attrs>();
  CHECK((attrs.before[2] == 0 && attrs.after[2] == 1 && attrs.before[3] == 2 && attrs.after[3] == 3));
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

TEST_CASE("weights in eight bits are rounded by a step for each output") {
  const Built built(model_of("conv2d: {name: c, filters: 4, kernel: 3, bias: false, int8_weight: true}"), {3, 5, 5},
                    true);
  CHECK(built.ops() == Ops{GPUNN_OP_DIV, GPUNN_OP_FAKE_QUANTIZE, GPUNN_OP_MUL, GPUNN_OP_CONV2D});
  REQUIRE((built.parameters.size() == 1 && built.buffers.size() == 1));
  CHECK(built.buffers[0].name == "c.weight_scale");
  CHECK(built.buffers[0].shape == Shape{4});
  // The first weights, up to 1 / sqrt(27), are within 127 steps.
  const std::vector<float> steps = nn::initial_values(built.buffers[0], 1, 0);
  CHECK(steps == std::vector<float>(4, static_cast<float>(1 / std::sqrt(27.0) / 127)));
  CHECK(Built(model_of("linear: {units: 3, bias: false}"), {7}, true).ops() == Ops{GPUNN_OP_MATMUL});
}

TEST_CASE("batch norm goes by the batch in training and by its buffers otherwise") {
  const ModelSpec model = model_of("batch_norm: {name: bn, epsilon: 0.5, momentum: 0.25}");
  for (const bool training : {true, false}) {
    const Built built(model, {3, 2, 2}, training);
    CHECK(built.ops() == Ops{training ? GPUNN_OP_BATCH_NORM : GPUNN_OP_BATCH_NORM_INFERENCE});
    const auto attrs = built.graph.nodes()[0].attrs.as<gpunn_batch_norm_attrs>();
    CHECK((attrs.epsilon == 0.5F && attrs.momentum == 0.25F));
    REQUIRE((built.parameters.size() == 2 && built.buffers.size() == 2));
    CHECK(built.parameters[0].name == "bn.weight");
    CHECK(built.parameters[0].init == nn::InitKind::ones);
    CHECK(built.parameters[1].name == "bn.bias");
    CHECK(built.parameters[1].init == nn::InitKind::zeros);
    CHECK_FALSE((built.parameters[0].decayed || built.parameters[1].decayed));
    CHECK(built.buffers[0].name == "bn.running_mean");
    CHECK(built.buffers[1].name == "bn.running_var");
    CHECK(built.buffers[1].shape == Shape{3});
    CHECK(built.buffers[1].init == nn::InitKind::ones);
    CHECK(to_string(built.graph.value(built.y).type) == "f32[4, 3, 2, 2]");
  }
}

TEST_CASE("layer norm is over whole samples, and what follows sees their shape") {
  const Built built(model_of("layer_norm: {name: ln, epsilon: 0.5}"), {3, 2, 2}, true);
  REQUIRE(built.ops() == Ops{GPUNN_OP_LAYER_NORM});
  CHECK(built.graph.nodes()[0].attrs.as<gpunn_layer_norm_attrs>().epsilon == 0.5F);
  CHECK(to_string(built.graph.value(built.graph.nodes()[0].inputs[0]).type) == "f32[4, 12]");
  CHECK(to_string(built.graph.value(built.y).type) == "f32[4, 3, 2, 2]");
  REQUIRE(built.parameters.size() == 2);
  CHECK(built.parameters[0].name == "ln.weight");
  CHECK(built.parameters[0].shape == Shape{3, 2, 2});
  CHECK(built.parameters[0].init == nn::InitKind::ones);
  CHECK(built.parameters[1].name == "ln.bias");
  CHECK_FALSE((built.parameters[0].decayed || built.parameters[1].decayed));
  CHECK(built.buffers.empty());
  CHECK(Built(model_of("layer_norm"), {7}, true).graph.nodes()[0].inputs[0] == Built(model_of("relu"), {7}, true).x);
}

TEST_CASE("local response norm has PyTorch's defaults") {
  const Built built(model_of("local_response_norm,\nlocal_response_norm: {size: 3, alpha: 2, beta: 0.5, k: 4}"),
                    {3, 2, 2}, true);
  REQUIRE(built.ops() == Ops{GPUNN_OP_LOCAL_RESPONSE_NORM, GPUNN_OP_LOCAL_RESPONSE_NORM});
  const auto usual = built.graph.nodes()[0].attrs.as<gpunn_local_response_norm_attrs>();
  CHECK((usual.size == 5 && usual.alpha == 1e-4F && usual.beta == 0.75F && usual.k == 1));
  const auto given = built.graph.nodes()[1].attrs.as<gpunn_local_response_norm_attrs>();
  CHECK((given.size == 3 && given.alpha == 2 && given.beta == 0.5F && given.k == 4));
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
