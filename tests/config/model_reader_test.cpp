// Models: structure, parameters, repeats, branches, and the messages about mistakes.
#include <gpunn/experiment.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace config_test;

namespace {

ModelSpec read_model(const std::string& layers, const std::string& head = "") {
  const TemporaryFolder folder;
  folder.write("m.yaml", head + "layers:\n" + layers);
  return load_experiment(folder.write("e.yaml", "model: m.yaml\ndata: points\n")).model;
}

std::vector<std::string> outputs(const ModelSpec& model) {
  std::vector<std::string> result;
  for (const OutputSpec& output : model.outputs) result.push_back(output.name + "=" + output.layer);
  return result;
}

std::vector<std::string> names(const ModelSpec& model) {
  std::vector<std::string> result;
  for (const LayerSpec& layer : model.layers) result.push_back(layer.name);
  return result;
}

}  // namespace

TEST_CASE("layers with and without parameters") {
  const ModelSpec model =
      read_model("  - conv2d: {name: first, filters: 6, kernel: [5, 3]}\n  - relu\n  - flatten:\n  - relu\n");
  CHECK(model.name == "m");
  CHECK(names(model) == Texts{"first", "relu1", "flatten1", "relu2"});
  const LayerSpec& conv = model.layers[0];
  REQUIRE(conv.parameters.size() == 2);
  CHECK(conv.parameters[1].name == "kernel");
  CHECK(conv.parameters[1].values == Texts{"5", "3"});
  CHECK((conv.where.line == 2 && conv.where.column == 5));
  CHECK(model.layers[1].from.empty());
}

TEST_CASE("a name made up never takes a given one") {
  CHECK(names(read_model("  - relu\n  - relu: {name: relu1}\n")) == Texts{"relu1_", "relu1"});
}

TEST_CASE("parameters are put in and worked out") {
  const ModelSpec model =
      read_model("  - linear: {units: $width*2}\n  - linear: {units: ($width+$k)/2}\n  - linear: {units: \"${k}0\"}\n",
                 "parameters: {width: 7, k: 3}\n");
  CHECK(model.layers[0].parameters[0].values == Texts{"14"});
  CHECK(model.layers[1].parameters[0].values == Texts{"5"});
  CHECK(model.layers[2].parameters[0].values == Texts{"30"});
}

TEST_CASE("repeats are unrolled, their names numbered") {
  const ModelSpec model = read_model(
      "  - linear: {name: stem, units: 4}\n"
      "  - repeat: $n\n"
      "    layers:\n"
      "      - linear: {name: a, units: 4}\n"
      "      - relu: {name: r, from: stem}\n"
      "      - add: {name: sum, from: [a, r]}\n",
      "parameters: {n: 2}\n");
  CHECK(names(model) == Texts{"stem", "a_1", "r_1", "sum_1", "a_2", "r_2", "sum_2"});
  CHECK(model.layers[2].from == Texts{"stem"});
  CHECK(model.layers[6].from == Texts{"a_2", "r_2"});
  CHECK(names(read_model("  - repeat: 0\n    layers: [relu]\n  - flatten\n")) == Texts{"flatten1"});
  CHECK(names(read_model("  - repeat: 2\n    layers:\n      - repeat: 2\n        layers: [{relu: {name: r}}]\n")) ==
        Texts{"r_1_1", "r_1_2", "r_2_1", "r_2_2"});
}

TEST_CASE("a model's input") {
  CHECK(read_model("  - relu\n", "input: [1, 28, $s]\nparameters: {s: 14}\n").inputs[0].shape ==
        std::vector<int64_t>{1, 28, 14});
  CHECK(read_model("  - relu\n", "input: 784\n").inputs[0].shape == std::vector<int64_t>{784});
  CHECK(
      model_errors_of("input: [1, 0]\nlayers: [relu]") ==
      Texts{"e.yaml:2:10: input: expected [channels, rows, columns] or [features], integers of at least 1 and at most "
            "65536"});
}

TEST_CASE("a model names its inputs") {
  const ModelSpec model = read_model(
      "  - flatten: {from: image}\n  - op: {op: copy, from: words}\n  - concat: {from: [flatten1, op1, row]}\n",
      "parameters: {s: 14}\ninputs:\n  image: [1, 28, $s]\n  words: {shape: 16, type: i32}\n  row: data\n");
  REQUIRE(model.inputs.size() == 3);
  CHECK(model.inputs[0].name == "image");
  CHECK(model.inputs[0].shape == std::vector<int64_t>{1, 28, 14});
  CHECK_FALSE(model.inputs[0].dtype);
  CHECK(model.inputs[1].name == "words");
  CHECK(model.inputs[1].shape == std::vector<int64_t>{16});
  CHECK(model.inputs[1].dtype == DType::i32);
  CHECK(model.inputs[2].shape.empty());
  CHECK(model.inputs[2].where.line == 5);
  CHECK(model.layers[0].from == Texts{"image"});
}

TEST_CASE("the first layer takes the first input, and a block's input is its own") {
  const ModelSpec model = read_model(
      "  - part: {name: left}\n  - part: {name: right, from: b}\n  - add: {from: [left, right]}\n",
      "inputs: {a: data, b: data}\nblocks:\n  part:\n    layers:\n      - relu\n      - add: {from: [relu1, input]}\n");
  CHECK(model.layers[0].from.empty());
  CHECK(model.layers[1].from == Texts{"left.relu1", "a"});
  CHECK(model.layers[2].from == Texts{"b"});
  CHECK(model.layers[3].from == Texts{"right.relu1", "b"});
}

TEST_CASE("a model names its outputs") {
  const std::string part = "blocks:\n  part:\n    layers: [relu]\n";
  const std::string layers = "  - part: {name: left}\n  - tanh: {name: right, from: input}\n";
  CHECK(outputs(read_model(layers, part + "outputs: [right, left]\n")) == Texts{"right=right", "left=left.relu1"});
  CHECK(outputs(read_model(layers, part + "outputs: {a: right, b: left, c: right}\n")) ==
        Texts{"a=right", "b=left.relu1", "c=right"});
  const ModelSpec one = read_model(layers + "  - relu: {from: left}\n", part + "outputs: [left, right, relu1]\n");
  CHECK(one.output_layer().name == "left.relu1");
  CHECK(one.sources_of(one.layers.back()) == Texts{"left.relu1"});
  CHECK(read_model("  - relu\n  - tanh\n").output_layer().name == "tanh1");
}

TEST_CASE("mistakes in inputs and outputs have their places") {
  CHECK(model_errors_of("inputs: {a: 3, b: 3}\nlayers:\n  - relu: {from: a}") ==
        Texts{"e.yaml:2:18: the input 'b' leads nowhere: the output 'relu1' does not depend on it"});
  CHECK(model_errors_of("inputs: {a: 3, b: 3}\nlayers:\n  - add: {from: [a, c]}") ==
        Texts{"e.yaml:4:7: add 'add1' comes from 'c', which no layer is called; known: a, b, add1"});
  CHECK(model_errors_of("inputs: {image: 3}\nlayers:\n  - relu: {from: input}")
            .front()
            .starts_with("e.yaml:4:7: relu 'relu1' comes from 'input', which no layer is called"));
  CHECK(model_errors_of("inputs: {image: 3}\nlayers:\n  - relu: {name: image}") ==
        Texts{"e.yaml:4:20: an input of the model is called 'image'; give the layer another name"});
  CHECK(model_errors_of("inputs: {image: {shap: 3, type: i33}}\nlayers: [relu]") ==
        Texts{"e.yaml:2:20: unknown key 'shap' in the input 'image'; did you mean 'shape'?",
              "e.yaml:2:35: type: expected f32, i32, i64, u8 or data, found 'i33'; did you mean 'i32'?"});
  CHECK(model_errors_of("input: 3\ninputs: {image: 3}\nlayers: [relu]") ==
        Texts{"e.yaml:3:11: inputs: the model also has 'input'; leave one of the two out"});
  CHECK(model_errors_of("inputs: image\nlayers: [relu]") ==
        Texts{"e.yaml:2:11: inputs: expected a map of 1 to 64 names, each with a shape or 'data', found 'image'"});
  CHECK(
      model_errors_of("layers: [relu, tanh]\noutputs: [relu1, relv1]") ==
      Texts{"e.yaml:3:20: an output of the model comes from 'relv1', which no layer is called; did you mean 'relu1'?"});
  CHECK(model_errors_of("layers: [relu, tanh]\noutputs: [tanh1, tanh1]") ==
        Texts{"e.yaml:3:20: outputs: 'tanh1' is there twice"});
  CHECK(model_errors_of("layers: [relu, tanh]\noutputs: input") ==
        Texts{"e.yaml:3:12: outputs: 'input' is an input; an output is a layer"});
  CHECK(model_errors_of("layers:\n  - relu: {name: a}\n  - relu: {name: dead}\n  - tanh: {name: b, from: a}\n"
                        "outputs: [a, b]") == Texts{"e.yaml:4:7: relu 'dead' leads nowhere: no output depends on it"});
}

TEST_CASE("unknown layers and parameters suggest what was meant") {
  CHECK(model_errors_of("layers:\n  - conv4d: {filters: 2}").front().starts_with("e.yaml:3:7: unknown layer 'conv4d'"));
  CHECK(model_errors_of("layers:\n  - depthwise_conv2d: {filters: 2}") ==
        Texts{"e.yaml:3:7: unknown layer 'depthwise_conv2d'; did you mean 'conv2d'?"});
  CHECK(model_errors_of("layers:\n  - conv2d: {name: c, filtrs: 2, kernel: 3}") ==
        Texts{"e.yaml:3:7: conv2d 'c' needs 'filters': an integer of at least 1 and at most 65536",
              "e.yaml:3:25: unknown key 'filtrs' in conv2d 'c'; did you mean 'filters'?"});
  CHECK(model_errors_of("layer:\n  - relu") ==
        Texts{"e.yaml:2:3: model: expected 'file', the path of a model, or 'layers', the model itself"});
  CHECK(model_errors_of("nam: x\nlayers: [relu]") ==
        Texts{"e.yaml:2:3: unknown key 'nam' in the model; did you mean 'name'?"});
}

TEST_CASE("layer values are typed and bounded") {
  CHECK(model_errors_of("layers:\n  - linear: {units: -3}") ==
        Texts{"e.yaml:3:16: units of linear 'linear1': expected an integer of at least 1 and at most 16777216, found "
              "'-3'"});
  CHECK(model_errors_of("layers:\n  - linear: {units: many}").size() == 1);
  CHECK(model_errors_of("layers:\n  - linear: {units: [1, 2]}").size() == 1);
  CHECK(model_errors_of("layers:\n  - linear: {units: {a: 1}}") ==
        Texts{"e.yaml:3:23: units: expected a value, found a map"});
  CHECK(model_errors_of("layers:\n  - linear: {units: 2, bias: maybe}") ==
        Texts{"e.yaml:3:26: bias of linear 'linear1': expected true or false, found 'maybe'"});
  CHECK(model_errors_of("layers:\n  - linear: {units: 2, activation: rellu}") ==
        Texts{"e.yaml:3:26: activation of linear 'linear1': expected one of none, relu, relu6, sigmoid, tanh, "
              "gelu, silu, found 'rellu'; did you mean 'relu'?"});
  CHECK(model_errors_of("layers:\n  - dropout: {p: 1}") ==
        Texts{"e.yaml:3:17: p of dropout 'dropout1': expected a number of at least 0 and below 1, found '1'"});
  CHECK(model_errors_of("layers:\n  - conv2d: {filters: 2, kernel: [1, 2, 3]}") ==
        Texts{"e.yaml:3:28: kernel of conv2d 'conv2d1': expected an integer of at least 1 and at most 4096, or [rows, "
              "columns], found [1, 2, 3]"});
  CHECK(model_errors_of("layers:\n  - conv2d: {filters: 2, kernel: 0}").size() == 1);
}

TEST_CASE("parameters that don't go together") {
  CHECK(model_errors_of("layers:\n  - conv2d: {filters: 3, kernel: 1, groups: 2}") ==
        Texts{"e.yaml:3:7: conv2d 'conv2d1': filters (3) must be a multiple of groups (2)"});
  CHECK(model_errors_of("layers:\n  - conv2d_transpose: {filters: 2, kernel: 3, stride: 2, output_padding: 2}") ==
        Texts{"e.yaml:3:7: conv2d_transpose 'conv2d_transpose1': output_padding (2) must be below the stride (2)"});
  CHECK(model_errors_of("layers:\n  - pad: {padding: [1, 2, 3, 4, 5]}") ==
        Texts{"e.yaml:3:13: padding of pad 'pad1': expected an integer of at least 0 and at most 4096, or one for each "
              "dimension, or one for each side, found [1, 2, 3, 4, 5]"});
  CHECK(model_errors_of("layers:\n  - reshape: {shape: [3, x]}") ==
        Texts{"e.yaml:3:17: shape of reshape 'reshape1': expected a list of integers, each at least -1 and at most "
              "16777216, found [3, x]"});
  CHECK(model_errors_of("layers:\n  - reshape: {shape: [-1, 2, -1]}") ==
        Texts{"e.yaml:3:7: reshape 'reshape1': shape: only one size can be what is left, -1"});
  CHECK(model_errors_of("layers:\n  - transpose: {permutation: [0, 2]}") ==
        Texts{"e.yaml:3:7: transpose 'transpose1': permutation: expected each of 0 to 1 once"});
  CHECK(model_errors_of("layers:\n  - relu: {name: a}\n  - concat: {from: [a]}") ==
        Texts{"e.yaml:4:7: concat 'concat1' takes 2 to 16 inputs, named as from: [a, b], found 1"});
  CHECK(model_errors_of("layers:\n  - max_pool: {window: [2, 2, 2, 2]}") ==
        Texts{"e.yaml:3:18: window of max_pool 'max_pool1': expected an integer of at least 1 and at most 4096, or one "
              "for each dimension, found [2, 2, 2, 2]"});
  CHECK(model_errors_of("layers:\n  - conv3d: {filters: 1, kernel: [3, 3]}") ==
        Texts{"e.yaml:3:28: kernel of conv3d 'conv3d1': expected an integer of at least 1 and at most 4096, or "
              "[planes, rows, columns], found [3, 3]"});
  CHECK(model_errors_of("layers:\n  - conv1d: {filters: 1, kernel: 3, padding: [1, 2, 3]}") ==
        Texts{"e.yaml:3:39: padding of conv1d 'conv1d1': expected an integer of at least 0 and at most 4096, or "
              "[left, right], or same, found [1, 2, 3]"});
  CHECK(model_errors_of("layers:\n  - conv2d: {filters: 1, kernel: 3, padding: [1, 2, 3]}") ==
        Texts{"e.yaml:3:39: padding of conv2d 'conv2d1': expected an integer of at least 0 and at most 4096, or "
              "[rows, columns], or [top, bottom, left, right], or same, found [1, 2, 3]"});
}

TEST_CASE("ill-shaped lists of layers") {
  CHECK(model_errors_of("layers: []") == Texts{"e.yaml:2:11: layers: expected a list of layers, found none"});
  CHECK(model_errors_of("layers: relu") == Texts{"e.yaml:2:11: layers: expected a list of layers, found 'relu'"});
  CHECK(model_errors_of("layers:\n  - conv2d:\n    filters: 3") ==
        Texts{"e.yaml:3:7: expected one layer, found the keys conv2d, filters; indent a layer's parameters below its "
              "type"});
  CHECK(model_errors_of("layers:\n  - [relu]") ==
        Texts{"e.yaml:3:7: expected a layer: its type, or 'type: {parameters}', found a list"});
  CHECK(model_errors_of("layers:\n  - linear: 5") ==
        Texts{"e.yaml:3:7: linear 'linear1' needs 'units': an integer of at "
              "least 1 and at most 16777216",
              "e.yaml:3:15: linear: expected a map of parameters, found "
              "'5'"});
}

TEST_CASE("parameters of a model that are wrong") {
  CHECK(model_errors_of("parameters: {width: 3}\nlayers:\n  - linear: {units: $widht}") ==
        Texts{"e.yaml:4:23: units: unknown parameter '$widht'; did you mean 'width'?"});
  CHECK(model_errors_of("parameters: {width: [3]}\nlayers: [relu]") ==
        Texts{"e.yaml:2:23: parameter 'width': expected a number or a word, found a list"});
  const TemporaryFolder folder;
  folder.write("m.yaml", "parameters: {unused: 1}\nlayers: [relu]\n");
  CHECK_THROWS_WITH(
      load_experiment(folder.write("e.yaml", "model: {file: m.yaml, parameters: {unused: 2}}\ndata: points\n")),
      Contains("e.yaml:1:44: no layer of the model uses its parameter 'unused'"));
}

TEST_CASE("names of layers") {
  CHECK(model_errors_of("layers:\n  - relu: {name: a}\n  - relu: {name: a}") ==
        Texts{"e.yaml:4:20: two layers are called 'a'; the other is in line 3"});
  CHECK(model_errors_of("layers:\n  - relu: {name: a/b}") ==
        Texts{"e.yaml:3:20: name: expected letters, digits, '_' and '-', and not 'input', found 'a/b'"});
  CHECK(model_errors_of("layers:\n  - relu: {name: input}").size() == 1);
}

TEST_CASE("branches name layers that exist") {
  CHECK(model_errors_of("layers:\n  - relu: {name: left}\n  - relu: {from: lefd}") ==
        Texts{"e.yaml:4:7: relu 'relu2' comes from 'lefd', which no layer is called; did you mean 'left'?"});
  CHECK(model_errors_of("layers:\n  - relu\n  - add") ==
        Texts{"e.yaml:4:7: add 'add1' takes 2 inputs, named as from: [a, b], found 1"});
  CHECK(model_errors_of("layers:\n  - relu: {name: a}\n  - relu: {from: [a, input]}").front() ==
        "e.yaml:4:7: relu 'relu2' takes 1 input, found 2");
}

TEST_CASE("a cycle is named") {
  CHECK(model_errors_of("layers:\n"
                        "  - relu: {name: a}\n"
                        "  - add: {name: b, from: [a, d]}\n"
                        "  - relu: {name: c}\n"
                        "  - relu: {name: d}\n"
                        "  - relu: {name: e}") == Texts{"e.yaml:4:7: the layers form a cycle: b -> c -> d -> b"});
  CHECK(model_errors_of("layers:\n  - relu: {name: a, from: a}") ==
        Texts{"e.yaml:3:7: the layers form a cycle: a -> a"});
}

TEST_CASE("a layer that leads nowhere is an error") {
  CHECK(model_errors_of("layers:\n  - relu: {name: a}\n  - relu: {name: dead}\n  - relu: {name: out, from: a}") ==
        Texts{"e.yaml:4:7: relu 'dead' leads nowhere: the output 'out' does not depend on it"});
}

TEST_CASE("a repeat that would never end is cut off") {
  CHECK(model_errors_of("layers:\n  - repeat: 10000\n    layers:\n      - repeat: 10000\n        layers: [relu]")
            .size() == 1);
  CHECK(model_errors_of("layers:\n  - repeat: 10000\n    layers:\n      - repeat: 10000\n        layers: []").size() >=
        1);
  CHECK(model_errors_of("layers:\n  - repeat: -1\n    layers: [relu]") ==
        Texts{"e.yaml:3:15: repeat: expected an integer of at least 0 and at most 10000, found '-1'"});
  CHECK(model_errors_of("layers:\n  - repeat: 2").front() ==
        "e.yaml:3:7: repeat: expected a list of layers beside it, under 'layers'");
}
