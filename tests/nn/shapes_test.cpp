// Ill-shaped models: the layer, its place, what it expected and what it found.
#include <gpunn/error.hpp>

#include <random>

#include "catch.hpp"
#include "common/files.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace nn_test;

namespace {

std::string shape_error(const ModelSpec& model, const Shape& sample) {
  try {
    nn::model_parameters(model, sample);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::usage);
    return error.what();
  }
  return "";
}

std::string shape_error(const std::string& layers, const Shape& sample) {
  return shape_error(model_of(layers), sample);
}

}  // namespace

TEST_CASE("any op is a layer, by its name and attributes") {
  CHECK(shape_error("op: {op: reduce, axes: 2, kind: max}", {3, 4}).empty());
  CHECK(shape_error("op: {op: reduce, axes: 2, colour: 3}", {3, 4}) ==
        "m:3:1: op 'op1': reduce: has no attribute 'colour'; known: kind, axes, keep_dims");
  CHECK(shape_error("op: {op: matmul}", {3, 4}) == "m:3:1: op 'op1': 'op1': MATMUL: takes 2 inputs, not 1");
  CHECK(shape_error("op: {op: reduce, axes: many}", {3, 4}).find("axes") != std::string::npos);
  CHECK(shape_error("constant: {shape: [2, 2, 2, 2, 2, 2, 2, 2]}", {3, 4}) ==
        "m:3:1: constant 'constant1': a sample has at most 7 dimensions, shape has 8");
}

TEST_CASE("boxes have four numbers, and each has scores") {
  const auto error = [](const std::string& boxes) {
    return shape_error("reshape: {name: boxes, shape: " + boxes +
                           "},\nreshape: {name: scores, from: input, shape: [6, 4]},\n"
                           "non_maximum_suppression: {name: found, from: [boxes, scores]}",
                       {24});
  };
  CHECK(error("[6, 4]").empty());
  CHECK(error("[4, 6]") ==
        "m:5:1: non_maximum_suppression 'found': expected boxes [N, P, 4] and scores [N, P, classes], "
        "found [1, 4, 6] of 'boxes' in line 3 and [1, 6, 4] of 'scores' in line 4");
}

TEST_CASE("a layer on the wrong number of dimensions") {
  CHECK(shape_error("relu,\nlinear: {name: fc, units: 3}", {16, 5, 5}) ==
        "m:4:1: linear 'fc': expected an input of [N, features] or [N, tokens, features], found [1, 16, 5, 5]; put a "
        "flatten in front");
  CHECK(shape_error("conv2d: {name: c, filters: 2, kernel: 3}", {2}) ==
        "m:3:1: conv2d 'c': expected an input of [N, channels, rows, columns], found [1, 2]");
  CHECK(
      shape_error("max_pool: {name: p, window: 2}", {784}) ==
      "m:3:1: max_pool 'p': expected an input of [N, channels, length], [N, channels, rows, columns] or [N, channels, "
      "planes, rows, columns], found [1, 784]");
  CHECK(shape_error("conv3d: {name: c, filters: 2, kernel: 3}", {2, 8, 8}) ==
        "m:3:1: conv3d 'c': expected an input of [N, channels, planes, rows, columns], found [1, 2, 8, 8]");
  CHECK(shape_error("lstm: {name: l, units: 2}", {8}) ==
        "m:3:1: lstm 'l': expected an input of [N, steps, features], found [1, 8]");
  CHECK(shape_error("softmax: {name: s},\nrelu", {1, 2, 2}) ==
        "m:3:1: softmax 's': expected an input of [N, classes], found [1, 1, 2, 2]; put a flatten in front");
}

TEST_CASE("an upsampling by nothing, or by two things") {
  const std::string expected =
      "expected either a factor, or a second input whose rows and columns are taken: from: [x, like]";
  CHECK(shape_error("upsample: {name: u}", {1, 4, 8}) == "m:3:1: upsample 'u': " + expected);
  CHECK(shape_error("upsample: {name: u, factor: [2, 0]}", {1, 4, 8}) == "m:3:1: upsample 'u': " + expected);
  CHECK(shape_error("max_pool: {name: p, window: 2},\nupsample: {name: u, factor: 2, from: [p, input]}", {1, 4, 8}) ==
        "m:4:1: upsample 'u': " + expected);
  CHECK(shape_error("global_avg_pool: {name: p},\nupsample: {name: u, from: [input, p]}", {1, 4, 8}) ==
        "m:4:1: upsample 'u': expected an input of [N, channels, rows, columns], found [1, 1]");
}

TEST_CASE("a window that does not fit") {
  CHECK(shape_error("conv2d: {name: c, filters: 2, kernel: 5}", {1, 4, 8}) ==
        "m:3:1: conv2d 'c': a kernel of 5x5 does not fit in an input of [1, 1, 4, 8] with padding 0x0");
  CHECK(shape_error("conv2d: {name: c, filters: 2, kernel: 3, dilation: 2, padding: 1}", {1, 2, 8}) ==
        "m:3:1: conv2d 'c': a kernel of 5x5 does not fit in an input of [1, 1, 2, 8] with padding 1x1");
  CHECK(shape_error("max_pool: {name: p, window: 3}", {1, 2, 3}) ==
        "m:3:1: max_pool 'p': a window of 3x3 does not fit in an input of [1, 1, 2, 3] with padding 0x0");
  CHECK(shape_error("avg_pool: {name: p, window: [4, 3], padding: [0, 1, 2, 0]}", {1, 2, 3}) ==
        "m:3:1: avg_pool 'p': a window of 4x3 does not fit in an input of [1, 1, 2, 3] with padding [0, 1, 2, 0]");
}

TEST_CASE("windows of other dimensions than the input, and of padding alone") {
  CHECK(shape_error("max_pool: {name: p, window: [2, 2]}", {3, 8}) ==
        "m:3:1: max_pool 'p': window: expected an integer, or one for each of the input's 1 dimensions behind the "
        "channels, found [2, 2]");
  CHECK(shape_error("avg_pool: {name: p, window: [4, 2], padding: [3, 1, 2, 1], count_padding: false}", {1, 5, 5}) ==
        "m:3:1: avg_pool 'p': padding that is not counted must be below the window: the padding is [3, 1, 2, 1], the "
        "window 4x2");
  CHECK(shape_error("max_pool: {name: p, window: 2, padding: 3}", {1, 5, 5}).empty());
}

TEST_CASE("a first state of another size, and more steps than are unrolled") {
  CHECK(shape_error("rnn: {name: r, units: 4}", {5000, 3}) ==
        "m:3:1: rnn 'r': the steps of a sample are unrolled, at most 4096; found an input of [1, 5000, 3]");
  CHECK(shape_error("slice: {name: h, dimension: 0, size: 1},\ngru: {name: g, units: 4, from: [input, h]}", {5, 3}) ==
        "m:4:1: gru 'g': expected a first state of [N, 1, 4], found [1, 1, 3] of 'h' in line 3");
}

TEST_CASE("a transposed convolution that leaves nothing") {
  CHECK(shape_error("conv2d_transpose: {name: c, filters: 2, kernel: 3, padding: 2}", {1, 2, 8}) ==
        "m:3:1: conv2d_transpose 'c': padding of 2x2 leaves nothing of an input of [1, 1, 2, 8]");
  CHECK(shape_error("conv2d_transpose: {name: c, filters: 2, kernel: 3, padding: [0, 4, 0, 0]}", {1, 2, 8}) ==
        "m:3:1: conv2d_transpose 'c': padding of [0, 4, 0, 0] leaves nothing of an input of [1, 1, 2, 8]");
  CHECK(shape_error("conv2d_transpose: {name: c, filters: 4, kernel: 1, groups: 2}", {3, 2, 2}) ==
        "m:3:1: conv2d_transpose 'c': expected channels in a multiple of groups (2), found an input of [1, 3, 2, 2]");
}

TEST_CASE("a mean of what is no image") {
  CHECK(shape_error("global_avg_pool: {name: p}", {3}) ==
        "m:3:1: global_avg_pool 'p': expected an input of [N, channels, length], [N, channels, rows, columns] or [N, "
        "channels, planes, rows, columns], found [1, 3]");
}

TEST_CASE("factors that fit neither a shape nor its channels") {
  const std::string error = shape_error(
      "relu: {name: a},\nconv2d: {name: b, filters: 4, kernel: 1},\nmultiply: {name: p, from: [a, b]}", {3, 2, 2});
  CHECK_THAT(error, Contains("multiply 'p': expected two inputs of one shape, or one of a number for each channel of "
                             "the other, found [1, 3, 2, 2] of 'a' in line 3 and [1, 4, 2, 2] of 'b' in line 4"));
}

TEST_CASE("channels that groups can't split") {
  CHECK(shape_error("group_norm: {name: g, groups: 2}", {3, 2, 2}) ==
        "m:3:1: group_norm 'g': expected channels in a multiple of groups (2), found an input of [1, 3, 2, 2]");
  CHECK(shape_error("conv2d: {name: c, filters: 4, kernel: 1, groups: 2}", {3, 2, 2}) ==
        "m:3:1: conv2d 'c': expected channels in a multiple of groups (2), found an input of [1, 3, 2, 2]");
}

TEST_CASE("branches of two shapes") {
  CHECK(shape_error(
            "linear: {name: a, units: 3},\nlinear: {name: b, units: 4, from: input},\nadd: {name: sum, from: [a, b]}",
            {2}) ==
        "m:5:1: add 'sum': expected inputs of one shape, but for sizes of 1, found [1, 3] of 'a' in line 3 and [1, "
        "4] "
        "of 'b' in line 4");
}

TEST_CASE("matrices whose inner dimensions differ have no product") {
  CHECK(shape_error("matmul: {name: p, from: [input, input]}", {2, 3}) ==
        "m:3:1: matmul 'p': expected two inputs [N, ..., M, K] and [N, ..., K, L], found [1, 2, 3] of the "
        "model's input and [1, 2, 3] of the model's input");
  CHECK_THAT(shape_error("matmul: {name: p, from: [input, input]}", {3}), Contains("found [1, 3]"));
}

TEST_CASE("constants and reductions of dimensions that there are not") {
  CHECK(shape_error("affine: {name: a, shape: [2, 3]}", {3, 2, 2}) ==
        "m:3:1: affine 'a': a shape of [2, 3] does not broadcast to an input of [1, 3, 2, 2]");
  CHECK(shape_error("affine: {name: a, shape: [1, 3]}", {3}) ==
        "m:3:1: affine 'a': a shape of [1, 3] does not broadcast to an input of [1, 3]");
  CHECK(shape_error("reduce: {name: r, dimensions: [0, 2]}", {3, 2}) ==
        "m:3:1: reduce 'r': dimension 2 of a sample of [3, 2] does not exist");
}

TEST_CASE("numbers that don't fit another shape") {
  CHECK(shape_error("reshape: {name: r, shape: [5, -1]}", {3, 4}) ==
        "m:3:1: reshape 'r': a sample of [3, 4] has 12 numbers, which can't be [5, -1]");
  CHECK(shape_error("reshape: {name: r, shape: [16777216, 16777216, 16777216]}", {3, 4}) ==
        "m:3:1: reshape 'r': a sample of [3, 4] has 12 numbers, which can't be [16777216, 16777216, 16777216]");
  CHECK(shape_error("transpose: {name: t, permutation: [1, 0]}", {3, 4, 5}) ==
        "m:3:1: transpose 't': the permutation is of 2 dimensions, a sample has 3: [3, 4, 5]");
  CHECK(shape_error("pixel_shuffle: {name: s, factor: 3}", {12, 4, 4}) ==
        "m:3:1: pixel_shuffle 's': expected channels in a multiple of factor^2 (9), found an input of [1, 12, 4, 4]");
  CHECK(shape_error("pad: {name: p, padding: 1}", {12}) ==
        "m:3:1: pad 'p': expected an input of [N, channels, length], [N, channels, rows, columns] or [N, channels, "
        "planes, rows, columns], found [1, 12]");
  CHECK(shape_error("max_pool: {name: half, window: 2},\nconcat: {name: c, from: [half, input]}", {3, 4, 4}) ==
        "m:4:1: concat 'c': expected inputs that differ in dimension 0 only, found [1, 3, 2, 2] of 'half' in "
        "line 3 and [1, 3, 4, 4] of the model's input");
}

TEST_CASE("tokens that there are not, or that heads can't share") {
  CHECK(shape_error("multi_head_attention: {name: a, heads: 4}", {5, 6}) ==
        "m:3:1: multi_head_attention 'a': expected features in a multiple of heads (4), found an input of [1, 5, 6]");
  CHECK(shape_error("multi_head_attention: {name: a, heads: 1}", {6}) ==
        "m:3:1: multi_head_attention 'a': expected an input of [N, tokens, features], found [1, 6]");
  CHECK(shape_error("class_token: {name: t}", {3, 4, 4}) ==
        "m:3:1: class_token 't': expected an input of [N, tokens, features], found [1, 3, 4, 4]");
  CHECK(shape_error("layer_norm: {name: n, dimensions: 3}", {5, 6}) ==
        "m:3:1: layer_norm 'n': a sample has 2 dimensions, not 3");
  CHECK(shape_error("slice: {name: s, dimension: 2}", {5, 6}) ==
        "m:3:1: slice 's': dimension 2 of a sample of [5, 6] does not exist");
  CHECK(shape_error("slice: {name: s, dimension: 1, start: 4, size: 3}", {5, 6}) ==
        "m:3:1: slice 's': the values from 4 to 7 of dimension 1 are not all in a sample of [5, 6]");
}

TEST_CASE("a model for other samples") {
  CHECK(shape_error(model_of("relu", "input: [1, 28, 28], "), {3, 32, 32}) ==
        "m: the model m takes samples of [1, 28, 28], these are [3, 32, 32]");
  CHECK(shape_error(model_of("relu", "input: [3, 32, 32], "), {3, 32, 32}).empty());
}

TEST_CASE("a cycle in a model made without a file") {
  ModelSpec model;
  model.layers = {{.type = "relu", .name = "a", .from = {"b"}, .parameters = {}, .where = {}},
                  {.type = "relu", .name = "b", .from = {"a"}, .parameters = {}, .where = {}}};
  CHECK(shape_error(model, {2}) == "the layers form a cycle: a -> b -> a");
}

TEST_CASE("sizes beyond any memory are refused, not multiplied past the end of an integer") {
  CHECK_THAT(shape_error("flatten,\nlinear: {name: big, units: 16777216}", {64, 64, 64}),
             Contains("linear 'big': a tensor of [16777216, 262144] is larger than anything that could be trained"));
  std::string layers;
  for (int i = 0; i < 40; ++i) {
    layers += "conv2d: {filters: 65536, kernel: 1, padding: 4096, groups: 1},\n";
  }
  CHECK_THAT(shape_error(layers + "relu", {1, 60000, 60000}), Contains("is larger than anything"));
  CHECK_THAT(shape_error("relu", {int64_t{1} << 40, int64_t{1} << 40}), Contains("is larger than anything"));
}

TEST_CASE("damaged models give a shape or an Error") {
  const std::string sound = read_text(std::string(GPUNN_SOURCE_DIR) + "/models/lenet5.yaml");
  std::string inline_model = "data: points\nmodel:\n  layers:\n" + [&] {
    std::string indented;
    bool in_layers = false;
    std::string line;
    for (const char c : sound) {
      line += c;
      if (c != '\n') continue;
      if (in_layers) indented += "  " + line;
      in_layers = in_layers || line == "layers:\n";
      line.clear();
    }
    return indented;
  }();
  inline_model.replace(inline_model.find("$classes"), 8, "10");
  std::mt19937 random(9);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const std::string digits = "0123456789";
  int good = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = inline_model;
    // Numbers are where shapes break.
    for (std::size_t wounds = 1 + below(3); wounds > 0;) {
      const std::size_t at = below(text.size());
      if (digits.find(text[at]) == std::string::npos) continue;
      if (below(2) == 0) {
        text[at] = digits[below(10)];
      } else {
        text.insert(at, 1, digits[below(10)]);
      }
      --wounds;
    }
    INFO(text);
    try {
      const ModelSpec model = parse_experiment(text, "e").model;
      const std::size_t parameters = nn::model_parameters(model, {1, 28, 28}).size();
      CHECK(parameters > 0);
      ++good;
    } catch (const Error&) {
      SUCCEED();
    }
  }
  CHECK(good > 100);
  CHECK(good < 2000);
}
