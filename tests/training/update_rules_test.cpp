// Parameter groups and frozen parameters: which parameters a step updates, how, and which ops it needs for that.
#include "program/update_rules.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "program/gradient_buckets.hpp"
#include "program/layout.hpp"
#include "program/programs.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using namespace gpunn::training;

namespace {

// A model of hidden.weight, hidden.bias, output.weight and output.bias.
Experiment experiment_that(const std::string& more, const std::filesystem::path& runs = "runs") {
  return parse_experiment(
      "model: {layers: [flatten, linear: {name: hidden, units: 16, activation: tanh}, linear: {name: output, units: "
      "10}]}\n"
      "data: {dataset: digits, synthetic_train: 128, synthetic_test: 32, batch_size: 32}\n"
      "backend: cpu\nruns: " +
          runs.string() + "\n" + more,
      "groups.yaml");
}

ParameterLayout layout_of(const Experiment& experiment) {
  std::vector<nn::Parameter> parameters = nn::model_parameters(experiment.model, {1, 28, 28});
  std::vector<UpdateRule> rules = update_rules(parameters, experiment);
  return lay_out(std::move(parameters), std::move(rules), 64);
}

std::size_t count_ops(const graph::Graph& graph, int32_t op) {
  std::size_t count = 0;
  for (const graph::Node& node : graph.nodes()) count += node.op == op ? 1 : 0;
  return count;
}

graph::Graph step_of(const Experiment& experiment) {
  const ParameterLayout layout = layout_of(experiment);
  SplitType split;
  split.name = "train";
  split.samples = {DType::u8, {128, 1, 28, 28}};
  split.fields = {{.name = kLabelField, .row = {DType::i32, {}}}};
  return training_program({experiment, layout, Schema(), 10, 4}, split);
}

std::map<std::string, std::vector<float>> parameters_after(const Experiment& experiment) {
  const RunResult result = train(experiment);
  std::map<std::string, std::vector<float>> found;
  for (const storage::StoredTensor& tensor : storage::load_checkpoint(result.run / "last.h5").parameters) {
    std::vector<float>& values = found[tensor.name];
    values.resize(tensor.values.size() / sizeof(float));
    std::memcpy(values.data(), tensor.values.data(), tensor.values.size());
  }
  return found;
}

}  // namespace

TEST_CASE("without groups the layout is one range, what decays in front") {
  const ParameterLayout layout = layout_of(experiment_that(""));
  REQUIRE(layout.ranges.size() == 1);
  CHECK(layout.ranges[0].decayed == 16 * 784 + 160);
  CHECK(layout.trained == layout.total);
  CHECK(layout.offset == std::vector<int64_t>{0, 16 * 784 + 160, 16 * 784, 16 * 784 + 160 + 16});
  CHECK(layout.bounds(layout.ranges[0]) ==
        std::vector<int64_t>{0, 16 * 784, 16 * 784 + 160, 16 * 784 + 176, layout.total});
}

TEST_CASE("each group is a range of its own, what is frozen comes last") {
  const ParameterLayout layout =
      layout_of(experiment_that("optimizer:\n  groups:\n    - {match: '*.bias', weight_decay: true}\n"
                                "    - {match: 'out*', weight_decay: 0.5, learning_rate_factor: 2}\n"
                                "training: {freeze: hidden.weight}\n"));
  REQUIRE(layout.ranges.size() == 2);  // nothing is in no group
  CHECK(layout.ranges[0].group == 0);
  CHECK(layout.ranges[0].decayed == 32);  // both biases decay
  CHECK(layout.ranges[1].begin == 32);
  CHECK(layout.ranges[1].end == 192);
  CHECK(layout.trained == 192);
  CHECK(layout.offset[0] == 192);
  CHECK(layout.trained_count() == 10 + 16 + 160);
  CHECK(layout.count() == layout.trained_count() + 16 * 784);
}

TEST_CASE("patterns that lead nowhere are all named") {
  const auto rules = [](const std::string& more) { return layout_of(experiment_that(more)); };
  CHECK_THROWS_WITH(rules("training: {freeze: [hiden.weight, 'x*']}\n"),
                    Contains("groups.yaml:") &&
                        Contains("'hiden.weight' matches no parameter; did you mean 'hidden.weight'?") &&
                        Contains("'x*' matches no parameter; there are hidden.weight, hidden.bias"));
  CHECK_THROWS_WITH(rules("optimizer: {groups: [{match: 'conv*'}]}\n"),
                    Contains("optimizer.groups: 'conv*' matches no parameter"));
  CHECK_THROWS_WITH(rules("optimizer: {groups: [{match: '*'}, {match: hidden.bias}]}\n"),
                    Contains("in a group further up"));
  CHECK_THROWS_WITH(rules("training: {freeze: '*'}\n"), Contains("nothing is left to train"));
}

TEST_CASE("a step computes no gradient of what is frozen, nor what only that needs") {
  const graph::Graph all = step_of(experiment_that(""));
  CHECK(count_ops(all, GPUNN_OP_TANH_BACKWARD) == 1);
  CHECK(count_ops(all, GPUNN_OP_BIAS_BACKWARD) == 2);
  const graph::Graph head = step_of(experiment_that("training: {freeze: 'hidden.*'}\n"));
  CHECK(count_ops(head, GPUNN_OP_TANH_BACKWARD) == 0);
  CHECK(count_ops(head, GPUNN_OP_BIAS_BACKWARD) == 1);
  CHECK(count_ops(head, GPUNN_OP_MATMUL) == count_ops(all, GPUNN_OP_MATMUL) - 2);
  // The head alone, with something in front of it that still has to be passed through.
  const graph::Graph front = step_of(experiment_that("training: {freeze: 'output.*'}\n"));
  CHECK(count_ops(front, GPUNN_OP_TANH_BACKWARD) == 1);
  CHECK(count_ops(front, GPUNN_OP_BIAS_BACKWARD) == 1);
}

TEST_CASE("frozen parameters keep their bits, the others train") {
  const TemporaryFolder folder;
  const std::string kind = GENERATE("sgd", "adamw", "lars");
  const std::string optimizer = "optimizer: {type: " + kind + ", learning_rate: 0.01, weight_decay: 0.1}\n";
  const auto before =
      parameters_after(experiment_that(optimizer + "training: {epochs: 1, freeze: ['hidden.*']}\n", folder.path()));
  const auto after =
      parameters_after(experiment_that(optimizer + "training: {epochs: 3, freeze: ['hidden.*']}\n", folder.path()));
  CHECK(before.at("hidden.weight") == after.at("hidden.weight"));
  CHECK(before.at("hidden.bias") == after.at("hidden.bias"));
  CHECK(before.at("output.weight") != after.at("output.weight"));
}

TEST_CASE("a group's factor and decay are those of an optimizer that has them for all") {
  const TemporaryFolder folder;
  const std::string kind = GENERATE(from_range(element_wise_optimizers()));
  if (kind == "lbfgs") return;  // its curvature is each group's own
  const std::string training = "training: {epochs: 1, max_steps: 2}\n";
  // All in one group: half the rate twice over, and a decay for all instead of the optimizer's.
  const auto grouped = parameters_after(experiment_that(
      "optimizer: {type: " + kind +
          ", learning_rate: 0.02, weight_decay: 0.5, groups: [{match: '*.weight', "
          "learning_rate_factor: 0.5, weight_decay: 0.25}, {match: '*', learning_rate_factor: 0.5}]}\n" +
          training,
      folder.path()));
  const auto plain = parameters_after(experiment_that(
      "optimizer: {type: " + kind + ", learning_rate: 0.01, weight_decay: 0.25}\n" + training, folder.path()));
  REQUIRE(grouped.size() == plain.size());
  for (const auto& [name, values] : plain) {
    INFO(kind << " " << name);
    const std::vector<float>& others = grouped.at(name);
    float largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) largest = std::max(largest, std::abs(values[i] - others[i]));
    CHECK(largest < 1e-6F);
  }
}

TEST_CASE("a training with groups and frozen parameters resumes to the straight run's bits") {
  const TemporaryFolder folder;
  const std::string settings =
      "optimizer: {type: adamw, weight_decay: 0.1, groups: [{match: output.*, learning_rate_factor: 0.5}]}\n";
  const auto with = [&](const std::string& training) {
    return experiment_that(settings + "training: {" + training + "freeze: hidden.weight}\n", folder.path());
  };
  const RunResult straight = train(with("epochs: 2, "));
  const RunResult first = train(with("epochs: 1, "));
  resume(first.run, {{"training.epochs", "2"}});
  CHECK(same_state(straight.run / "last.h5", first.run / "last.h5"));
}

TEST_CASE("gradients are added up over the ranks in buckets, those of the last layers first") {
  const Experiment experiment = experiment_that("");
  const ParameterLayout layout = layout_of(experiment);  // 12544 and 160 weights, then biases of 16 and 10, in 16s
  using distributed::Share;
  const auto of = [](const std::vector<Share>& shares) {
    std::vector<std::pair<int64_t, int64_t>> result;
    for (const Share& share : shares) result.emplace_back(share.begin, share.end);
    return result;
  };
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  CHECK(of(gradient_buckets(layout, 1 << 20)) == Pairs{{0, 12736}});
  CHECK(of(gradient_buckets(layout, 100)) == Pairs{{12544, 12704}, {12704, 12736}, {0, 12544}});
  CHECK(of(gradient_buckets(layout, 200)) == Pairs{{12704, 12736}, {0, 12704}});
  // Few of the first layer, which would have been among the others.
  const Experiment wide = parse_experiment(
      "model: {layers: [flatten, linear: {units: 2, bias: false}, linear: {units: 4000, bias: false}]}\n"
      "data: {dataset: digits, synthetic_train: 32, synthetic_test: 32, batch_size: 32}\nbackend: cpu\n",
      "wide.yaml");
  CHECK(of(gradient_buckets(layout_of(wide), 20000)) == Pairs{{1568, 9568}, {0, 1568}});
}

TEST_CASE("ranks share out every parameter once, each share aligned") {
  const Experiment experiment = experiment_that("");
  std::vector<nn::Parameter> parameters = nn::model_parameters(experiment.model, {1, 28, 28});
  std::vector<UpdateRule> rules = update_rules(parameters, experiment);
  constexpr int kRanks = 3;
  const ParameterLayout layout = lay_out(std::move(parameters), std::move(rules), 64, kRanks);
  CHECK(layout.trained % (16 * kRanks) == 0);
  const std::vector<distributed::Share> buckets = gradient_buckets(layout, 100);
  std::vector<int> owners(static_cast<std::size_t>(layout.trained)), states;
  int64_t decayed = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    const ParameterLayout own = sharded(layout, buckets, {rank, kRanks});
    CHECK(own.kept == layout.trained / kRanks);
    states.assign(static_cast<std::size_t>(own.kept), 0);
    for (const UpdateRange& range : own.ranges) {
      for (int64_t i = range.begin; i < range.end; ++i) ++owners[static_cast<std::size_t>(i)];
      for (int64_t i = 0; i < range.end - range.begin; ++i) ++states[static_cast<std::size_t>(range.state_begin + i)];
      decayed += range.decayed;
    }
    CHECK(std::ranges::count(states, 1) == own.kept);
    for (const distributed::Share& bucket : buckets) CHECK(shard_of(bucket, {rank, kRanks}).begin % 16 == 0);
  }
  CHECK(std::ranges::count(owners, 1) == layout.trained);
  CHECK(decayed == layout.ranges.front().decayed);
}
