// The suite "subgraphs", and how plans and trainings show fused subgraphs.
#include <gpunn/experiment.hpp>
#include <gpunn/plan.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "check_support.hpp"
#include "session/session.hpp"

using namespace gpunn::testing;

namespace {

gpunn::CheckReport run_subgraphs(const std::string& backend, const std::string& profile = "",
                                 std::vector<std::string> cases = {}) {
  gpunn::CheckOptions options = options_for(backend);
  options.suites = {"subgraphs"};
  options.profile = profile;
  options.cases = std::move(cases);
  return gpunn::check(options);
}

// A small training of each kind: enough to show what the suite finds in a plugin.
const std::vector<std::string> kSmall{"MLP 784-37-10, batch 13",
                                      "MLP with batch norm",
                                      "MLP with tanh",
                                      "LeNet 3-5-17",
                                      "LeNet 8-12-64",
                                      "LeNet with dropout",
                                      "LeNet with batch norm behind all layers",
                                      "a residual network with batch",
                                      "LeNet with GELU",
                                      "dropout, batch norm"};

gpunn::Experiment experiment_on(const std::string& backend) {
  gpunn::Experiment experiment = gpunn::parse_experiment(R"(
model:
  layers:
    - flatten
    - linear: {name: hidden, units: 16, activation: relu}
    - linear: {name: output, units: 10}
data: {dataset: digits, synthetic_train: 64, synthetic_test: 32, batch_size: 16}
optimizer: {type: sgd, learning_rate: 0.1, momentum: 0.9}
training: {epochs: 5}
)",
                                                         "test");
  experiment.backend = backend;
  experiment.plugins = options_for(backend).plugins;
  return experiment;
}

}  // namespace

TEST_CASE("correct subgraphs pass, in one piece or in many", "[long]") {
  for (const bool whole : {true, false}) {
    const gpunn::CheckReport report =
        whole ? run_subgraphs("fusing", "all") : run_subgraphs("fusing_pieces", "all", kSmall);
    INFO(report.backend << ": " << summary(report));
    CHECK(report.failed == 0);
    CHECK(report.skipped == 0);
    CHECK(report.passed >= (whole ? 30 : 10));
    // The same kernels in the same order: the same bits.
    for (const gpunn::CheckCase& test : report.cases) CHECK(test.error == 0);
    CHECK_THAT(report.cases.at(0).detail, Contains("ops fused (replay"));
  }
}

// Where the ops' own rounding changes a result by many roundoffs, a subgraph that computes in fp32 is not wrong.
TEST_CASE("a subgraph that computes in fp32 where the ops round is right", "[long]") {
  gpunn::CheckOptions options = options_for("fusing_exact");
  options.suites = {"subgraphs"};
  options.cases = kSmall;
  options.precision = gpunn::Precision::tf32;
  const gpunn::CheckReport report = gpunn::check(options);
  INFO(summary(report));
  CHECK(report.failed == 0);
  CHECK(report.passed >= 10);
  // The ops do round: with equal bits this test would test nothing.
  CHECK(std::ranges::any_of(report.cases, [](const gpunn::CheckCase& test) { return test.error > 0.05; }));
}

TEST_CASE("a subgraph that leaves something out fails", "[long]") {
  const gpunn::CheckReport forgetful = run_subgraphs("fusing_forgetful");
  CHECK(forgetful.failed == static_cast<int>(forgetful.cases.size()));
  CHECK_THAT(forgetful.cases.at(0).detail, Contains("bias") && Contains("is off by"));
  const gpunn::CheckReport miscounting = run_subgraphs("fusing_miscounting");
  CHECK(miscounting.failed == static_cast<int>(miscounting.cases.size()));
  CHECK_THAT(miscounting.cases.at(0).detail, Contains("the number of rows"));
}

TEST_CASE("a subgraph that is not as deterministic as it says fails", "[long]") {
  const gpunn::CheckReport report = run_subgraphs("fusing_wavering", "", kSmall);
  CHECK(report.failed > 0);
  CHECK_THAT(summary(report), Contains("said to be deterministic") && !Contains("is off by"));
}

TEST_CASE("if nothing is fused the suite says why, and fails only plugins that give a reason") {
  // It fuses what surrounds batch norm, and has nothing for a multilayer perceptron.
  const std::vector<std::string> cases{"MLP 784-128-10, batch 128, SGD", "MLP 784-1-10", "a residual network"};
  const gpunn::CheckReport some = run_subgraphs("cpu", "all", cases);
  INFO(summary(some));
  CHECK(some.ok());
  CHECK(some.passed > 0);
  CHECK(some.skipped > 0);
  CHECK(some.cases.at(0).detail == "no op is fused");
  CHECK(run_subgraphs("fusing_idle", "", cases).ok());
  const gpunn::CheckReport idle = run_subgraphs("fusing_idle", "all", cases);
  CHECK(idle.failed > 0);
  CHECK(idle.skipped > 0);  // the rare trainings
  CHECK_THAT(summary(idle), Contains("no op is fused; fusing_idle, at ") && Contains("it is idle"));
}

TEST_CASE("a plan shows the fused subgraphs and their plugins") {
  const gpunn::PlanReport report = gpunn::plan(experiment_on("fusing"));
  REQUIRE(report.subgraphs.size() == 1);
  CHECK(report.subgraphs[0].name == "replay");
  CHECK(report.subgraphs[0].backend == "fusing");
  CHECK(report.subgraphs[0].first_op == 0);
  CHECK(report.subgraphs[0].last_op == static_cast<int64_t>(report.ops.size()) - 1);
  for (const gpunn::PlannedOp& op : report.ops) {
    CHECK(op.backend == "fusing");
    CHECK(op.subgraph == 0);
    CHECK(op.workspace_bytes == 0);
  }
  gpunn::Experiment off = experiment_on("fusing");
  off.subgraphs = false;
  const gpunn::PlanReport plain = gpunn::plan(off);
  CHECK(plain.subgraphs.empty());
  for (const gpunn::PlannedOp& op : plain.ops) CHECK(op.backend == "cpu");
  CHECK(gpunn::plan(experiment_on("fusing_idle")).not_fused.size() == 1);
}

TEST_CASE("a training is the same with fused subgraphs, without, and observed op by op") {
  const auto losses = [](const gpunn::Experiment& experiment, bool observed) {
    gpunn::training::Session session = gpunn::training::Session::open(experiment);
    session.train_steps(4);
    int ops = 0;
    if (observed) session.train_step_observed([&ops](const gpunn::graph::Node&) { ++ops; });
    CHECK((ops == 0) == !observed);
    session.train_steps(observed ? 5 : 6);
    session.evaluate([](const gpunn::graph::Node&) {});
    return std::pair(session.losses(0, 10), session.evaluate().loss);
  };
  const auto fused = losses(experiment_on("fusing"), false);
  CHECK(losses(experiment_on("fusing"), true) == fused);
  CHECK(losses(experiment_on("fusing_pieces"), true) == fused);
  CHECK(losses(experiment_on("cpu"), false) == fused);
  gpunn::Experiment off = experiment_on("fusing");
  off.subgraphs = false;
  CHECK(losses(off, false) == fused);
}

TEST_CASE("two backends are compared op by op, whatever they fuse") {
  gpunn::training::Session session = gpunn::training::Session::open(experiment_on("check:fusing,cpu"));
  CHECK(session.training().subgraphs.taken.empty());
  session.train_steps(2);
  CHECK(session.comparison()->steps == 2);
}

TEST_CASE("a step that is fused as a whole in f32 alone is taken in place of ops in bf16") {
  const auto halves = [](const std::string& backend) {
    gpunn::Experiment experiment = experiment_on(backend);
    experiment.precision = gpunn::Precision::bf16;
    gpunn::training::Session session = gpunn::training::Session::open(experiment);
    session.train_steps(3);
    CHECK(std::isfinite(session.losses(0, 3).back()));
    const std::vector<gpunn::graph::Value>& values = session.training().graph.values();
    return std::ranges::count_if(values, [](const auto& value) { return value.type.dtype == gpunn::DType::bf16; });
  };
  CHECK(halves("fusing_wide") == 0);
  CHECK(halves("fusing_pieces") > 0);  // is nothing as a whole
  CHECK(halves("fusing_idle") > 0);
}
