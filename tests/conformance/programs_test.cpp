// The suite "programs", and what a training with claims tells of itself.
#include <gpunn/experiment.hpp>
#include <gpunn/plan.hpp>

#include <algorithm>

#include "check_support.hpp"
#include "training/session.hpp"

using namespace gpunn::testing;

namespace {

gpunn::CheckReport run_programs(const std::string& backend, const std::string& profile = "") {
  gpunn::CheckOptions options = options_for(backend);
  options.suites = {"programs"};
  options.profile = profile;
  return gpunn::check(options);
}

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

TEST_CASE("claims that are right pass, in one piece or in many", "[long]") {
  for (const char* backend : {"claiming", "claiming_pieces"}) {
    const gpunn::CheckReport report = run_programs(backend, "all");
    INFO(backend << ": " << summary(report));
    CHECK(report.failed == 0);
    CHECK(report.skipped == 0);
    CHECK(report.passed >= 12);
    // The same kernels in the same order: the same bits.
    for (const gpunn::CheckCase& test : report.cases) CHECK(test.error == 0);
    CHECK_THAT(report.cases.at(0).detail, Contains("ops claimed (replay"));
  }
}

// Of what the ops' rounding moves by any number of roundoffs, a claim in fp32 is no wrong answer.
TEST_CASE("a claim that computes in fp32 where the ops round is right", "[long]") {
  gpunn::CheckOptions options = options_for("claiming_exact");
  options.suites = {"programs"};
  options.precision = gpunn::Precision::tf32;
  const gpunn::CheckReport report = gpunn::check(options);
  INFO(summary(report));
  CHECK(report.failed == 0);
  CHECK(report.passed >= 12);
  // They do round: no other bits, and the test would be none.
  CHECK(std::ranges::any_of(report.cases, [](const gpunn::CheckCase& test) { return test.error > 0.05; }));
}

TEST_CASE("a claim that leaves something out is found out", "[long]") {
  const gpunn::CheckReport forgetful = run_programs("claiming_forgetful");
  CHECK(forgetful.failed == static_cast<int>(forgetful.cases.size()));
  CHECK_THAT(forgetful.cases.at(0).detail, Contains("bias") && Contains("is off by"));
  const gpunn::CheckReport miscounting = run_programs("claiming_miscounting");
  CHECK(miscounting.failed == static_cast<int>(miscounting.cases.size()));
  CHECK_THAT(miscounting.cases.at(0).detail, Contains("the number of rows"));
}

TEST_CASE("a claim that is not as deterministic as it says is found out", "[long]") {
  const gpunn::CheckReport report = run_programs("claiming_wavering");
  CHECK(report.failed > 0);
  CHECK_THAT(summary(report), Contains("said to be deterministic") && !Contains("is off by"));
}

TEST_CASE("where nothing is claimed the suite says why, and fails only those who could") {
  const gpunn::CheckReport without = run_programs("cpu", "all");
  CHECK(without.ok());
  CHECK(without.passed == 0);
  CHECK_THAT(without.cases.at(0).detail, Contains("no plugin of the chain claims runs of ops"));
  CHECK(run_programs("claiming_idle").ok());
  const gpunn::CheckReport idle = run_programs("claiming_idle", "all");
  CHECK(idle.failed > 0);
  CHECK(idle.skipped > 0);  // what is rare
  CHECK_THAT(summary(idle), Contains("no op is claimed; claiming_idle, at ") && Contains("it is idle"));
}

TEST_CASE("a plan shows what is run as one, and by whom") {
  const gpunn::PlanReport report = gpunn::plan(experiment_on("claiming"));
  REQUIRE(report.claims.size() == 1);
  CHECK(report.claims[0].name == "replay");
  CHECK(report.claims[0].backend == "claiming");
  CHECK(report.claims[0].first_op == 0);
  CHECK(report.claims[0].last_op == static_cast<int64_t>(report.ops.size()) - 1);
  for (const gpunn::PlannedOp& op : report.ops) {
    CHECK(op.backend == "claiming");
    CHECK(op.claim == 0);
    CHECK(op.workspace_bytes == 0);
  }
  gpunn::Experiment off = experiment_on("claiming");
  off.programs = false;
  const gpunn::PlanReport plain = gpunn::plan(off);
  CHECK(plain.claims.empty());
  for (const gpunn::PlannedOp& op : plain.ops) CHECK(op.backend == "cpu");
  CHECK(gpunn::plan(experiment_on("claiming_idle")).unclaimed.size() == 1);
}

TEST_CASE("a training is the same with claims, without, and looked at op by op") {
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
  const auto claimed = losses(experiment_on("claiming"), false);
  CHECK(losses(experiment_on("claiming"), true) == claimed);
  CHECK(losses(experiment_on("claiming_pieces"), true) == claimed);
  CHECK(losses(experiment_on("cpu"), false) == claimed);
  gpunn::Experiment off = experiment_on("claiming");
  off.programs = false;
  CHECK(losses(off, false) == claimed);
}

TEST_CASE("two backends are compared op by op, whatever they claim") {
  gpunn::training::Session session = gpunn::training::Session::open(experiment_on("check:claiming,cpu"));
  CHECK(session.training().claims.taken.empty());
  session.train_steps(2);
  CHECK(session.comparison()->steps == 2);
}
