// Trainings with training.recompute: the same bits in less memory.
#include <gpunn/plan.hpp>
#include <gpunn/summary.hpp>

#include <map>

#include "catch.hpp"
#include "program/recomputed_stages.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using training::RecomputedStage;
using training::Session;

namespace {

// Blocks with batch norm, dropout, a shortcut and a grouped convolution.
Experiment blocks_on_digits(const std::string& training, const std::vector<Override>& more = {}) {
  return parse_experiment(
      "model:\n"
      "  blocks:\n"
      "    residual:\n"
      "      layers:\n"
      "        - conv2d: {name: conv1, filters: 8, kernel: 3, padding: 1, bias: false}\n"
      "        - batch_norm: {name: bn1}\n"
      "        - relu\n"
      "        - dropout: {p: 0.2}\n"
      "        - conv2d: {name: conv2, filters: 8, kernel: 3, padding: 1, groups: 2}\n"
      "        - add: {from: [conv2, input]}\n"
      "        - relu: {name: out}\n"
      "  layers:\n"
      "    - conv2d: {name: stem, filters: 8, kernel: 5}\n"
      "    - residual: {name: stage, repeat: 4}\n"
      "    - max_pool: {window: 2}\n"
      "    - flatten\n"
      "    - linear: {name: hidden, units: 32, activation: tanh}\n"
      "    - layer_norm: {name: norm}\n"
      "    - linear: {name: output, units: 10}\n"
      "data: {dataset: digits, synthetic_train: 40, synthetic_test: 16, batch_size: 16, drop_last: false}\n"
      "optimizer: {type: adam, learning_rate: 0.002}\n"
      "training: {epochs: 2, threads: 1" +
          training + "}\nbackend: cpu\nruns: runs\n",
      "recompute.yaml", more);
}

struct Learnt {
  std::vector<float> losses;
  storage::Checkpoint state;
  uint64_t arena = 0;
};

Learnt learnt_in(const Experiment& experiment, int64_t steps) {
  Learnt result;
  Session session = Session::open(experiment);
  session.train_steps(steps);
  result.losses = session.losses(0, steps);
  session.save_state(result.state);
  result.arena = session.training().plan.arena_bytes;
  return result;
}

void check_same_bits(const std::vector<storage::StoredTensor>& a, const std::vector<storage::StoredTensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].name);
    CHECK(a[i].name == b[i].name);
    CHECK(a[i].values == b[i].values);
  }
}

std::vector<std::string> names_of(const std::vector<RecomputedStage>& stages) {
  std::vector<std::string> names;
  for (const RecomputedStage& stage : stages) names.push_back(stage.name);
  return names;
}

// The stages of a model whose layers' outputs are of these sizes.
std::vector<std::string> stages_of(const std::string& layers, const std::string& patterns,
                                   const std::map<std::string, uint64_t>& bytes) {
  const Experiment experiment = parse_experiment(
      "model: {layers: [" + layers + "]}\ndata: points\ntraining: {recompute: " + patterns + "}\n", "stages.yaml");
  std::map<std::string, uint64_t> all;
  for (const LayerSpec& layer : experiment.model.layers) {
    const auto found = bytes.find(layer.name);
    all[layer.name] = found == bytes.end() ? 100 : found->second;
  }
  return names_of(training::recomputed_stages(experiment, all));
}

}  // namespace

TEST_CASE("recomputation changes no bit of a training, and takes less memory") {
  const std::string precision = GENERATE(as<std::string>(), "fp32", "bf16", "f16");
  const std::string patterns = GENERATE(as<std::string>(), "stage", "'stage.*'", "['*.bn1', '*.relu1', '*.dropout1']");
  INFO(precision << ", " << patterns);
  constexpr int64_t kSteps = 5;  // over a partial batch and into the second epoch
  const std::string common = ", precision: " + precision;
  const Learnt kept = learnt_in(blocks_on_digits(common), kSteps);
  const Learnt again = learnt_in(blocks_on_digits(common + ", recompute: " + patterns), kSteps);
  CHECK(again.losses == kept.losses);
  check_same_bits(again.state.parameters, kept.state.parameters);
  check_same_bits(again.state.buffers, kept.state.buffers);
  if (patterns != "stage") {
    CHECK(again.arena < kept.arena);
  }  // all blocks as one stage are alive together: the peak is there
}

TEST_CASE("recomputation goes with parts of a batch, frozen layers and an average") {
  constexpr int64_t kSteps = 4;
  const std::vector<Override> full{{"data.drop_last", "true"}};
  const std::string common = ", accumulate: 2, ema: 0.5, freeze: ['stage.0.*'], freeze_statistics: true";
  const Learnt kept = learnt_in(blocks_on_digits(common, full), kSteps);
  const Learnt again = learnt_in(blocks_on_digits(common + ", recompute: '*'", full), kSteps);
  CHECK(again.losses == kept.losses);
  check_same_bits(again.state.parameters, kept.state.parameters);
  check_same_bits(again.state.buffers, kept.state.buffers);
}

TEST_CASE("a plan names what is recomputed, and the memory with and without") {
  const PlanReport kept = plan(blocks_on_digits(""));
  CHECK(kept.recomputed.empty());
  CHECK(kept.kept_arena_bytes == kept.arena_bytes);
  const PlanReport again = plan(blocks_on_digits(", recompute: 'stage.*'"));
  REQUIRE(again.recomputed.size() == 4);
  CHECK(again.recomputed.front().name == "stage.3");  // its gradients come first
  for (const PlannedRecomputation& stage : again.recomputed) CHECK(stage.ops >= 4);
  CHECK(again.arena_bytes < again.kept_arena_bytes);
  CHECK(again.kept_arena_bytes == kept.arena_bytes);
  CHECK(again.ops.size() > kept.ops.size());
}

TEST_CASE("a block that is matched is a stage, as a whole or each of its repeats") {
  const auto named = [](const std::string& patterns) {
    const Experiment experiment = blocks_on_digits(", recompute: " + patterns);
    std::map<std::string, uint64_t> bytes;
    for (const LayerSpec& layer : experiment.model.layers) bytes[layer.name] = 100;
    return names_of(training::recomputed_stages(experiment, bytes));
  };
  CHECK(named("stage") == std::vector<std::string>{"stage"});
  CHECK(named("'stage.*'") == std::vector<std::string>{"stage.0", "stage.1", "stage.2", "stage.3"});
  CHECK(named("[stage.1, stage.3]") == std::vector<std::string>{"stage.1", "stage.3"});
  CHECK(named("stage.2.bn1") == std::vector<std::string>{"stage.2.bn1"});
}

TEST_CASE("layers without blocks are cut into stages where little is kept, and the last is not recomputed") {
  const std::string nine =
      "linear: {name: a, units: 4}, relu: {name: b}, linear: {name: c, units: 4}, relu: {name: d}, linear: {name: e, "
      "units: 4}, "
      "relu: {name: f}, linear: {name: g, units: 4}, relu: {name: h}, linear: {name: i, units: 4}";
  CHECK(stages_of(nine, "'*'", {}) == std::vector<std::string>{"a to c", "d to f"});
  CHECK(stages_of(nine, "'*'", {{"b", 1}, {"g", 1}}) == std::vector<std::string>{"a to b", "c to g"});
  CHECK(stages_of(nine, "[b, c, e]", {}) == std::vector<std::string>{"b to c", "e"});
  CHECK(stages_of(nine, "[i]", {}).empty());
}
