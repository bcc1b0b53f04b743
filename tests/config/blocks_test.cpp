// Blocks, branches, conditions and choices: the layers that they become, and the messages about mistakes.
#include <gpunn/experiment.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace config_test;

namespace {

ModelSpec read_blocks(const std::string& text, const std::string& parameters = "") {
  const TemporaryFolder folder;
  folder.write("m.yaml", text);
  return load_experiment(
             folder.write("e.yaml", "model: {file: m.yaml, parameters: {" + parameters + "}}\ndata: points\n"))
      .model;
}

Texts names_of_layers(const ModelSpec& model) {
  Texts result;
  for (const LayerSpec& layer : model.layers) result.push_back(layer.name);
  return result;
}

const LayerSpec& layer(const ModelSpec& model, const std::string& name) {
  for (const LayerSpec& candidate : model.layers) {
    if (candidate.name == name) return candidate;
  }
  throw std::runtime_error("no layer " + name);
}

std::string value(const ModelSpec& model, const std::string& name, const std::string& key) {
  for (const LayerParameter& parameter : layer(model, name).parameters) {
    if (parameter.name == key) return parameter.values.front();
  }
  return "";
}

// A block with a shortcut, as residual networks have them.
const std::string kResidual =
    "parameters: {width: 8}\n"
    "blocks:\n"
    "  basic:\n"
    "    parameters: {units: , half: $units/2, project: false}\n"
    "    layers:\n"
    "      - linear: {name: fc1, units: $half, activation: relu}\n"
    "      - linear: {name: fc2, units: $units}\n"
    "      - branch: shortcut\n"
    "        from: input\n"
    "        when: $project\n"
    "        layers:\n"
    "          - linear: {name: fc, units: $units, bias: false}\n"
    "      - add: {from: [fc2, shortcut]}\n"
    "      - relu\n"
    "layers:\n"
    "  - linear: {name: stem, units: $width}\n"
    "  - basic: {name: stage1, repeat: 2, units: $width}\n"
    "  - basic: {name: stage2, repeat: 2, units: $width*2, first: {project: true}}\n"
    "  - linear: {name: output, units: 2}\n";

// The errors of a model whose blocks and layers are given; the first line of both together is line 2.
Texts block_errors(const std::string& text) { return model_errors_of(text); }

}  // namespace

TEST_CASE("a block becomes layers with its name in front") {
  const ModelSpec model = read_blocks(kResidual);
  CHECK(names_of_layers(model) == Texts{"stem", "stage1.0.fc1", "stage1.0.fc2", "stage1.0.add1", "stage1.0.relu1",
                                        "stage1.1.fc1", "stage1.1.fc2", "stage1.1.add1", "stage1.1.relu1",
                                        "stage2.0.fc1", "stage2.0.fc2", "stage2.0.shortcut.fc", "stage2.0.add1",
                                        "stage2.0.relu1", "stage2.1.fc1", "stage2.1.fc2", "stage2.1.add1",
                                        "stage2.1.relu1", "output"});
  CHECK(layer(model, "stage1.0.fc1").from.empty());
  CHECK(layer(model, "stage1.0.add1").from == Texts{"stage1.0.fc2", "stem"});
  CHECK(layer(model, "stage1.1.add1").from == Texts{"stage1.1.fc2", "stage1.0.relu1"});
  CHECK(layer(model, "stage2.0.shortcut.fc").from == Texts{"stage1.1.relu1"});
  CHECK(layer(model, "stage2.0.add1").from == Texts{"stage2.0.fc2", "stage2.0.shortcut.fc"});
  CHECK(layer(model, "output").from.empty());
}

TEST_CASE("a block's parameters: given, of the first alone, defaults of others") {
  const ModelSpec model = read_blocks(kResidual, "width: 6");
  CHECK(value(model, "stage1.0.fc1", "units") == "3");
  CHECK(value(model, "stage2.0.fc1", "units") == "6");
  CHECK(value(model, "stage2.1.fc2", "units") == "12");
  CHECK(value(model, "stage2.0.shortcut.fc", "units") == "12");
}

TEST_CASE("a resolved model is the same model, without blocks") {
  const TemporaryFolder folder;
  folder.write("m.yaml", kResidual);
  const Experiment e = load_experiment(folder.write("e.yaml", "model: m.yaml\ndata: points\n"));
  const std::string resolved = resolved_yaml(e);
  const ModelSpec again = parse_experiment(resolved, "r.yaml").model;
  CHECK(names_of_layers(again) == names_of_layers(e.model));
  for (std::size_t i = 0; i < again.layers.size(); ++i) CHECK(again.layers[i].from == e.model.layers[i].from);
  CHECK(resolved_yaml(parse_experiment(resolved, "r.yaml")) == resolved);
}

TEST_CASE("blocks in blocks, without a repeat, by their bare name") {
  const ModelSpec model = read_blocks(
      "blocks:\n"
      "  two: {layers: [one, one: {name: last}]}\n"
      "  one: {layers: [relu, linear: {name: fc, units: 3}]}\n"
      "layers: [two, two: {from: input}, add: {from: [two1, two2.last.fc]}]\n");
  CHECK(names_of_layers(model) == Texts{"two1.one1.relu1", "two1.one1.fc", "two1.last.relu1", "two1.last.fc",
                                        "two2.one1.relu1", "two2.one1.fc", "two2.last.relu1", "two2.last.fc", "add1"});
  CHECK(layer(model, "two2.one1.relu1").from == Texts{"input"});
  CHECK(layer(model, "add1").from == Texts{"two1.last.fc", "two2.last.fc"});
}

TEST_CASE("blocks inside a repeat, and a repeat inside a block") {
  const ModelSpec model = read_blocks(
      "blocks: {b: {layers: [{repeat: 2, layers: [relu: {name: r}]}, add: {from: [r_1, r_2]}]}}\n"
      "layers: [{repeat: 2, layers: [b: {name: x}]}, add: {from: [x_1, x_2]}]\n");
  CHECK(names_of_layers(model) == Texts{"x_1.r_1", "x_1.r_2", "x_1.add1", "x_2.r_1", "x_2.r_2", "x_2.add1", "add1"});
  CHECK(layer(model, "x_2.add1").from == Texts{"x_2.r_1", "x_2.r_2"});
  CHECK(layer(model, "add1").from == Texts{"x_1.add1", "x_2.add1"});
}

TEST_CASE("layers under a condition") {
  const std::string text =
      "parameters: {more: true}\nlayers:\n  - relu: {name: a}\n  - when: $more\n    layers: [relu: {name: b}]\n"
      "  - relu: {name: c}\n";
  CHECK(names_of_layers(read_blocks(text)) == Texts{"a", "b", "c"});
  CHECK(names_of_layers(read_blocks(text, "more: false")) == Texts{"a", "c"});
  const std::string use = "parameters: {more: true}\nblocks: {x: {layers: [relu]}}\nlayers: [tanh, x: {when: $more}]\n";
  CHECK(names_of_layers(read_blocks(use)) == Texts{"tanh1", "x1.relu1"});
  CHECK(names_of_layers(read_blocks(use, "more: false")) == Texts{"tanh1"});
}

TEST_CASE("one of several lists of layers") {
  const std::string text =
      "parameters: {stem: small}\nlayers:\n  - choose: $stem\n    small: [relu: {name: s}]\n"
      "    large: [relu: {name: l}, tanh]\n    none:\n  - sigmoid\n";
  CHECK(names_of_layers(read_blocks(text)) == Texts{"s", "sigmoid1"});
  CHECK(names_of_layers(read_blocks(text, "stem: large")) == Texts{"l", "tanh1", "sigmoid1"});
  CHECK(names_of_layers(read_blocks(text, "stem: none")) == Texts{"sigmoid1"});
  CHECK_THROWS_WITH(read_blocks(text, "stem: smal"),
                    Contains("m.yaml:3:13: choose: there is no 'smal' here; did you mean 'small'?"));
}

TEST_CASE("a branch that is left out is what it comes from") {
  const ModelSpec model = read_blocks(
      "layers:\n  - relu: {name: a}\n  - branch: none\n    from: later\n    when: false\n    layers: [tanh]\n"
      "  - relu: {name: c, from: a}\n  - add: {name: d, from: [none, c]}\n  - relu: {name: later, from: a}\n"
      "  - add: {from: [d, none]}\n");
  CHECK(names_of_layers(model) == Texts{"a", "c", "d", "later", "add2"});
  CHECK(layer(model, "d").from == Texts{"later", "c"});
  CHECK(layer(model, "add2").from == Texts{"d", "later"});
}

TEST_CASE("a mistake in a block is told once, with the place of its use") {
  CHECK(
      block_errors("blocks:\n  b:\n    layers:\n      - linear: {name: fc, unit: 3}\nlayers:\n  - b: {repeat: 3}\n") ==
      Texts{"e.yaml:5:11: linear 'b1.0.fc' needs 'units': an integer of at least 1 and at most 16777216; in the "
            "block 'b', used at e.yaml:7:7",
            "e.yaml:5:30: unknown key 'unit' in linear 'b1.0.fc'; did you mean 'units'?; in the block 'b', used at "
            "e.yaml:7:7"});
  CHECK(block_errors("blocks:\n  b:\n    layers:\n      - linear: {name: fc, units: $n}\nlayers:\n  - b\n  - b\n") ==
        Texts{"e.yaml:5:37: units: unknown parameter '$n'; in the block 'b', used at e.yaml:7:7"});
}

TEST_CASE("what a block may come from") {
  CHECK(block_errors("blocks: {b: {layers: [relu: {name: r}, add: {from: [r, stem]}]}}\n"
                     "layers: [relu: {name: stem}, b: {name: x}, b]") ==
        Texts{"e.yaml:2:54: add comes from 'stem', which no layer of the block 'b' is called (a block sees what is in "
              "it); known: input, add1, r; in the block 'b', used at e.yaml:3:32"});
  CHECK(block_errors("blocks: {b: {layers: [relu]}}\nlayers: [relu: {name: stem}, b: {name: x, from: sten}]") ==
        Texts{"e.yaml:3:51: b 'x' comes from 'sten', which no layer is called; did you mean 'stem'?"});
  CHECK(block_errors("layers: [{branch: a, from: b, layers: []}, {branch: b, from: a, layers: []}, relu: {from: a}]")
            .size() == 1);
}

TEST_CASE("uses of blocks that are wrong") {
  const std::string blocks =
      "blocks: {b: {parameters: {n: , p: 1}, layers: [linear: {units: $n}, dropout: {p: 0.$p}]}}\n";
  CHECK(block_errors(blocks + "layers: [dropot: {p: 0.1}, b: {n: 1}]").front() ==
        "e.yaml:3:12: unknown layer or block 'dropot'; did you mean 'dropout'?");
  CHECK(block_errors(blocks + "layers: [b]") == Texts{"e.yaml:3:12: the block 'b' needs 'n', which has no default"});
  CHECK(block_errors(blocks + "layers: [b: {n: 1, pp: 2}]") ==
        Texts{"e.yaml:3:22: unknown parameter 'pp' of the block 'b'; known: n, p, name, from, when, repeat, first"});
  CHECK(block_errors(blocks + "layers: [b: {n: 1, p: high}]") ==
        Texts{"e.yaml:3:25: parameter 'p' of the block 'b': expected a value like '1', found 'high'"});
  CHECK(block_errors(blocks + "layers: [b: {n: 1, repeat: 0}]") ==
        Texts{"e.yaml:3:30: repeat: expected an integer of at least 1 and at most 10000, found '0'"});
  CHECK(block_errors(blocks + "layers: [b: {n: 1, repeat: 10001}]").size() == 1);
  CHECK(block_errors(blocks + "layers: [b: {n: 1, first: {p: 2}}]") ==
        Texts{"e.yaml:3:12: the block 'b': 'first' is for a block with 'repeat'"});
  CHECK(block_errors(blocks + "layers: [b: {n: 1, repeat: 2, first: {m: 2}}]") ==
        Texts{"e.yaml:3:41: unknown parameter 'm' of the block 'b'; known: n, p"});
  CHECK(block_errors(blocks + "layers: [b: {n: 1, when: maybe}]") ==
        Texts{"e.yaml:3:28: when: expected true or false, found 'maybe'"});
  CHECK(block_errors(blocks + "layers: [b: 3]") ==
        Texts{"e.yaml:3:15: the block 'b': expected a map of parameters, found '3'"});
  CHECK(block_errors(blocks + "layers: [relu: {name: x}, b: {name: x, n: 1}]") ==
        Texts{"e.yaml:3:29: two layers are called 'x'; the other is in line 3"});
  CHECK(block_errors(blocks + "layers: [b: {name: x.y, n: 1}]").size() == 1);
}

TEST_CASE("blocks that are wrong") {
  CHECK(block_errors("blocks: {relu: {layers: [tanh]}}\nlayers: [relu]") ==
        Texts{"e.yaml:2:12: a block can't be called 'relu': that is a type of layer"});
  CHECK(block_errors("blocks: {b: {layer: [tanh]}}\nlayers: [relu]") ==
        Texts{"e.yaml:2:12: the block 'b': expected a list of layers under 'layers'",
              "e.yaml:2:16: unknown key 'layer' in the block 'b'; did you mean 'layers'?"});
  CHECK(block_errors("blocks: {b: {layers: [tanh], parameters: {first: 1}}}\nlayers: [b]").size() == 1);
  CHECK(block_errors("blocks: {b: {layers: [tanh], parameters: {x: [1]}}}\nlayers: [b]").size() == 1);
  CHECK(block_errors("blocks: {b: {layers: [tanh]}}\nlayers: [relu]") ==
        Texts{"e.yaml:2:12: no layer uses the block 'b'"});
  CHECK(block_errors("blocks: [b]\nlayers: [relu]") ==
        Texts{"e.yaml:2:11: blocks: expected a map of names and blocks, found a list"});
}

TEST_CASE("a block that contains itself is named, with the way") {
  CHECK(block_errors(
            "blocks: {a: {layers: [b]}, b: {layers: [relu, c: {when: false}]}, c: {layers: [a]}}\nlayers: [a]") ==
        Texts{"e.yaml:2:12: the block 'a' contains itself: a -> b -> c -> a"});
  CHECK(block_errors("blocks: {a: {layers: [{branch: x, layers: [{choose: y, y: [a]}]}]}}\nlayers: [relu]") ==
        Texts{"e.yaml:2:12: the block 'a' contains itself: a -> a"});
}

TEST_CASE("blocks that would fill the memory are cut off") {
  // Each holds the one before twice.
  std::string blocks = "blocks:\n  b0: {layers: [relu]}\n";
  for (int i = 1; i < 30; ++i) {
    blocks += "  b" + std::to_string(i) + ": {layers: [b" + std::to_string(i - 1) + ": {repeat: 2}]}\n";
  }
  CHECK(block_errors(blocks + "layers: [b29]").size() == 1);
  // The same with nothing in it.
  std::string empty = "blocks:\n  b0: {layers: [{when: false, layers: [relu]}]}\n";
  for (int i = 1; i < 30; ++i) {
    empty += "  b" + std::to_string(i) + ": {layers: [b" + std::to_string(i - 1) + ": {repeat: 9}]}\n";
  }
  CHECK_FALSE(block_errors(empty + "layers: [b29, relu]").empty());
  std::string chain = "blocks:\n  b0: {layers: [relu]}\n";
  for (int i = 1; i < 5000; ++i) chain += "  b" + std::to_string(i) + ": {layers: [b" + std::to_string(i - 1) + "]}\n";
  CHECK_THAT(block_errors(chain + "layers: [b4999]").front(), Contains("nested more than 32 deep"));
  CHECK(block_errors("layers: [{repeat: 10000, layers: [{repeat: 10000, layers: [{when: false, layers: []}]}]}, relu]")
            .size() == 1);
  // Parameters that double from one to the next.
  std::string doubling = "blocks: {b: {parameters: {p0: abcdefgh";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "$p" + std::to_string(i - 1);
    doubling += ", p" + std::to_string(i) + ": " + before + before;
  }
  CHECK_THAT(block_errors(doubling + "}, layers: [relu]}}\nlayers: [b]").front(),
             Contains("more than 4096 characters"));
}
