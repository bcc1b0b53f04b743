#include <gpunn/experiment.hpp>

#include "catch.hpp"
#include "experiment/schema.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace config_test;

namespace {

void check_same(const ModelSpec& a, const ModelSpec& b) {
  CHECK(a.name == b.name);
  CHECK(a.parameters == b.parameters);
  REQUIRE(a.outputs.size() == b.outputs.size());
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    CHECK(a.outputs[i].name == b.outputs[i].name);
    CHECK(a.outputs[i].layer == b.outputs[i].layer);
  }
  REQUIRE(a.inputs.size() == b.inputs.size());
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    CHECK(a.inputs[i].name == b.inputs[i].name);
    CHECK(a.inputs[i].shape == b.inputs[i].shape);
    CHECK(a.inputs[i].dtype == b.inputs[i].dtype);
  }
  REQUIRE(a.layers.size() == b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    CHECK(a.layers[i].type == b.layers[i].type);
    CHECK(a.layers[i].name == b.layers[i].name);
    CHECK(a.layers[i].from == b.layers[i].from);
    REQUIRE(a.layers[i].parameters.size() == b.layers[i].parameters.size());
    for (std::size_t j = 0; j < a.layers[i].parameters.size(); ++j) {
      CHECK(a.layers[i].parameters[j].name == b.layers[i].parameters[j].name);
      CHECK(a.layers[i].parameters[j].values == b.layers[i].parameters[j].values);
    }
  }
}

// Every key of the schema, and the model.
void check_round_trip(const Experiment& before) {
  const std::string text = resolved_yaml(before);
  const Experiment after = parse_experiment(text, "resolved.yaml");
  for (const auto& key : config::schema()) {
    if (key.section() == "early_stopping" && !before.early_stopping) continue;
    CAPTURE(key.path);
    CHECK(key.get(before) == key.get(after));
  }
  CHECK(before.early_stopping.has_value() == after.early_stopping.has_value());
  check_same(before.model, after.model);
  CHECK(resolved_yaml(after) == text);
}

}  // namespace

TEST_CASE("the shipped experiments survive being resolved") {
  for (const auto& entry : fs::directory_iterator(fs::path(GPUNN_SOURCE_DIR) / "experiments")) {
    CAPTURE(entry.path());
    if (entry.path().extension() != ".yaml") continue;
    check_round_trip(load_experiment(entry.path()));
  }
}

TEST_CASE("a model with several inputs and outputs survives") {
  check_round_trip(parse_experiment(R"(
model:
  inputs: {image: [3, 8, 8], "7": {shape: data, type: i32}, row: data}
  layers:
    - flatten: {from: image}
    - op: {name: words, op: copy, from: "7"}
    - concat: {name: all, from: [flatten1, words, row]}
    - linear: {name: second, units: 2}
  outputs: {second: second, "x:0": all, last: second}
data: points
)",
                                    "e.yaml"));
}

TEST_CASE("an experiment with everything survives") {
  check_round_trip(parse_experiment(R"(
name: "2024"
model:
  name: "null: \"quoted\" \\ \t #"
  parameters: {w: 3, on: "yes"}
  input: [3, 8, 8]
  layers:
    - conv2d: {name: "1", filters: $w, kernel: [3, 1], padding: same}
    - relu: {name: left, from: "1"}
    - add: {from: [left, "1"]}
data: {dataset: fashion_mnist, path: "a b/ü", mean: [0.1, 0.30000000000000004], stddev: [1e-3, 2], batch_size: 3}
optimizer:
  {type: adamw, learning_rate: 0.1, betas: [0.8, 0.9], epsilon: 1e-7, weight_decay: 0.123456789012345678,
   groups: [{match: "1.*", weight_decay: 0.1}, {match: ["a", 'b*'], learning_rate_factor: 0.3, weight_decay: true}]}
schedule: {type: exponential, k: 0.333333333333333314829616256247}
training: {seed: 9223372036854775807, precision: bf16, freeze: ['conv*', "2.?"], freeze_statistics: true, recompute: ["1", 'l*']}
early_stopping: {monitor: loss, min_delta: 1e-17}
plugins: ["x, y", 'it''s']
backend: "check:cpu,other"
)",
                                    "e.yaml"));
}

TEST_CASE("each optimizer and schedule survives") {
  for (const std::string& optimizer : config::find_key("optimizer.type")->choices) {
    check_round_trip(parse_experiment(kSound + "optimizer: " + optimizer + "\n", "e"));
  }
  for (const std::string& schedule : config::find_key("schedule.type")->choices) {
    const std::string extra = schedule == "step"         ? ", step_size: 2"
                              : schedule == "multi_step" ? ", milestones: [2, 3.5], warmup_steps: 3"
                                                         : "";
    check_round_trip(parse_experiment(kSound + "schedule: {type: " + schedule + extra + "}\n", "e"));
  }
}

TEST_CASE("a resolved experiment says that its parameters are put in") {
  const std::string text = resolved_yaml(load_experiment(fs::path(GPUNN_SOURCE_DIR) / "experiments/mlp_mnist.yaml"));
  CHECK(
      errors_of(text, {{"model.parameters.width", "3"}}) ==
      Texts{"--set model.parameters.width: no layer of the model uses its parameter 'width'; in a resolved experiment, "
            "parameters are already put in"});
  CHECK(errors_of(text, {{"training.epochs", "3"}}).empty());
}

TEST_CASE("the resolved experiment works from any folder") {
  const TemporaryFolder folder;
  const Experiment e = load_experiment(
      folder.write("e.yaml", "model: {layers: [relu]}\ndata: {dataset: mnist, path: d}\nplugins: [p]\n"));
  CHECK(e.data.path.is_absolute());
  CHECK(e.plugins.front() == folder.path() / "p");
}
