#include "compiler/recompute.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "compiler/autodiff.hpp"
#include "compiler/half_precision.hpp"
#include "compiler/memory_plan.hpp"

using namespace gpunn;
using namespace gpunn::compiler;
using namespace gpunn::graph;

namespace {

constexpr int64_t kRows = 512, kWidth = 64;

// Blocks of a dense layer, a batch norm, a ReLU and a dropout each, named "0.dense", "0.norm" and so on; then a loss.
struct DeepNet {
  Graph g;
  std::vector<ValueId> weights, statistics;
  NodeRange forward;
  std::size_t backward = 0;
  std::vector<ValueId> gradients;

  explicit DeepNet(int blocks, bool half = false) {
    const ValueId x = g.add_value("x", {DType::f32, {kRows, kWidth}}, Storage::data);
    const ValueId step = g.add_value("step", {DType::i64, {}}, Storage::state);
    ValueId y = x;
    for (int i = 0; i < blocks; ++i) y = block(std::to_string(i) + ".", y, step);
    if (half) y = use_half_precision(g, 0, DType::bf16, y);
    forward = {0, g.nodes().size()};
    const ValueId sum = g.add1(GPUNN_OP_REDUCE, "loss", Attributes::of(sum_of_all()), {y});
    backward = g.nodes().size();
    gradients = add_gradients(g, sum, weights);
  }

  ValueId block(const std::string& name, ValueId x, ValueId step) {
    weights.push_back(g.add_value(name + "weight", {DType::f32, {kWidth, kWidth}}, Storage::parameters));
    const ValueId gamma = g.add_value(name + "gamma", {DType::f32, {kWidth}}, Storage::parameters);
    const ValueId beta = g.add_value(name + "beta", {DType::f32, {kWidth}}, Storage::parameters);
    for (const char* kind : {"mean", "var"}) {
      statistics.push_back(g.add_value(name + kind, {DType::f32, {kWidth}}, Storage::state));
    }
    const ValueId dense = g.add1(GPUNN_OP_MATMUL, name + "dense", {}, {x, weights.back()});
    gpunn_batch_norm_attrs norm{};
    norm.epsilon = 1e-5F;
    norm.momentum = 0.1F;
    const std::vector<ValueId> normed =
        g.add(GPUNN_OP_BATCH_NORM, name + "norm", Attributes::of(norm),
              {dense, gamma, beta, statistics[statistics.size() - 2], statistics.back()});
    const ValueId relu = g.add1(GPUNN_OP_RELU, name + "relu", {}, {normed[0]});
    gpunn_dropout_attrs dropout{};
    dropout.p = 0.25F;
    return g.add1(GPUNN_OP_DROPOUT, name + "dropout", Attributes::of(dropout), {relu, step});
  }

  static gpunn_reduce_attrs sum_of_all() {
    gpunn_reduce_attrs attrs{};
    attrs.axes = 3;
    return attrs;
  }

  // All layers of a block are of one stage.
  std::map<std::string, int> stages(const std::set<int>& blocks) const {
    std::map<std::string, int> result;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      for (const char* layer : {"dense", "norm", "relu", "dropout"}) {
        const int block = static_cast<int>(i);
        result[std::to_string(i) + "." + layer] = blocks.contains(block) ? block : kKept;
      }
    }
    return result;
  }

  void recompute(const std::set<int>& blocks) { recompute_stages(g, forward, backward, stages(blocks)); }
  uint64_t arena() const {
    return plan_memory(g, std::vector<uint64_t>(g.nodes().size(), 0), 64).arena_bytes;  // throws on reads before writes
  }
  // The index of the first node of this name; the number of nodes where there is none.
  std::size_t find(const std::string& name) const {
    return static_cast<std::size_t>(std::ranges::find(g.nodes(), name, &Node::name) - g.nodes().begin());
  }
};

int recomputed(const Graph& g) {
  return static_cast<int>(
      std::ranges::count_if(g.nodes(), [](const Node& node) { return node.name.ends_with(kRecomputedSuffix); }));
}

}  // namespace

TEST_CASE("recomputed stages take less memory, and the more the deeper the model") {
  const bool half = GENERATE(false, true);
  DeepNet kept(8, half);
  DeepNet some(8, half), all(8, half);
  some.recompute({0, 1, 2, 3});
  all.recompute({0, 1, 2, 3, 4, 5, 6});
  CHECK(some.arena() < 0.85 * static_cast<double>(kept.arena()));
  CHECK(all.arena() < 0.6 * static_cast<double>(kept.arena()));
}

TEST_CASE("a stage is computed again in front of its gradients, from the value that it begins with") {
  DeepNet net(3);
  net.recompute({1});
  const std::size_t again = net.find("1.dense.recompute");
  REQUIRE(again < net.g.nodes().size());
  CHECK(again > net.find("2.dropout.backward"));
  CHECK(again < net.find("1.norm.backward"));
  // Block 0 is kept: the copy reads what block 0 made.
  CHECK(net.g.nodes()[again].inputs[0] == net.g.nodes()[net.find("0.dropout")].outputs[0]);
  CHECK(net.find("0.dense.recompute") == net.g.nodes().size());
  CHECK(net.find("2.dense.recompute") == net.g.nodes().size());
}

TEST_CASE("neighbouring stages keep the value between them") {
  DeepNet net(3);
  net.recompute({0, 1});
  const ValueId between = net.g.nodes()[net.find("0.dropout")].outputs[0];
  CHECK(net.g.nodes()[net.find("1.dense.recompute")].inputs[0] == between);
  CHECK(net.find("0.dropout.recompute") == net.g.nodes().size());
  CHECK(net.find("0.relu.recompute") < net.g.nodes().size());
}

TEST_CASE("gradients read no recomputed stage's activations of the forward part") {
  DeepNet net(2, true);
  std::set<ValueId> made;
  for (std::size_t n = 0; n < net.backward; ++n) {
    if (net.g.nodes()[n].name.starts_with("0.") && net.g.nodes()[n].op != GPUNN_OP_COPY) {
      for (const ValueId output : net.g.nodes()[n].outputs) made.insert(net.g.root(output));
    }
  }
  net.recompute({0});
  for (std::size_t n = net.backward; n < net.g.nodes().size(); ++n) {
    for (const ValueId input : net.g.nodes()[n].inputs) {
      INFO(net.g.nodes()[n].name << " reads " << net.g.value(input).name);
      CHECK_FALSE(made.contains(net.g.root(input)));
    }
  }
}

TEST_CASE("running statistics are updated once, and random numbers drawn by the same counter") {
  DeepNet net(3);
  net.recompute({0, 1});
  for (const ValueId state : net.statistics) {
    CHECK(std::ranges::count_if(net.g.nodes(),
                                [&](const Node& node) { return std::ranges::count(node.outputs, state) != 0; }) == 1);
  }
  // Block 0's dropout is kept, as block 1 begins with it; of block 1 what block 2's weight gradient reads is drawn
  // again.
  const Node& first = net.g.nodes()[net.find("1.dropout")];
  const Node& again = net.g.nodes()[net.find("1.dropout.recompute")];
  CHECK(again.attrs == first.attrs);
  CHECK(again.inputs[1] == first.inputs[1]);
}

TEST_CASE("no stages: nothing changes") {
  DeepNet net(2);
  const std::size_t nodes = net.g.nodes().size();
  net.recompute({});
  CHECK(net.g.nodes().size() == nodes);
  recompute_stages(net.g, net.forward, net.backward, {});
  CHECK(net.g.nodes().size() == nodes);
}

TEST_CASE("what was made of a value that is overwritten since is kept") {
  const bool overwritten = GENERATE(false, true);
  Graph g;
  const ValueId x = g.add_value("x", {DType::f32, {16, 4}}, Storage::data);
  const ValueId offset = g.add_value("offset", {DType::f32, {16, 4}}, Storage::state);
  const ValueId weight = g.add_value("weight", {DType::f32, {16, 4}}, Storage::parameters);
  const ValueId sum = g.add1(GPUNN_OP_ADD, "shift", {}, {x, offset});
  const ValueId product = g.add1(GPUNN_OP_MUL, "scale", {}, {sum, weight});
  const NodeRange forward{0, g.nodes().size()};
  if (overwritten) g.add_into(GPUNN_OP_COPY, "state", {}, {x}, {offset});
  const ValueId loss = g.add1(GPUNN_OP_REDUCE, "loss", Attributes::of(DeepNet::sum_of_all()), {product});
  const std::size_t backward = g.nodes().size();
  add_gradients(g, loss, {weight});
  recompute_stages(g, forward, backward, {{"shift", 0}, {"scale", kKept}});
  CHECK(recomputed(g) == (overwritten ? 0 : 1));
}
