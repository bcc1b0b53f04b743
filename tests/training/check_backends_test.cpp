// `backend: check:A,B` on real trainings: plugins that are wrong, each in its own way, and one that only rounds.
#include <fstream>
#include <sstream>

#include "catch.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

// Small batches: the sample plugins are plain loops.
Experiment checked_lenet(const std::filesystem::path& runs, const std::string& backends,
                         const std::vector<Override>& more = {}) {
  std::vector<Override> overrides{{"backend", backends},
                                  {"data.synthetic_train", "96"},
                                  {"data.synthetic_test", "32"},
                                  {"data.batch_size", "8"},
                                  {"training.epochs", "1"}};
  overrides.insert(overrides.end(), more.begin(), more.end());
  Experiment experiment = small_lenet(runs, overrides);
  experiment.plugins = {GPUNN_TRAINING_SAMPLE_DIR};
  return experiment;
}

// What ends a training that must fail with exit code 1.
std::string departure(const Experiment& experiment, const std::filesystem::path& run) {
  try {
    train(experiment, {.listener = nullptr, .stop = nullptr, .run_folder = run});
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::failed);
    return error.what();
  }
  return "(no departure)";
}

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a backend checked with itself trains LeNet as it does alone, bit for bit") {
  const TemporaryFolder folder;
  const RunResult alone = train(checked_lenet(folder.path(), "cpu"));
  const RunResult checked = train(checked_lenet(folder.path(), "check:cpu,cpu"));
  REQUIRE(checked.comparison);
  CHECK(checked.backend == "check:cpu,cpu");
  CHECK(checked.comparison->trained == "cpu");
  CHECK(checked.comparison->steps == 12);
  CHECK(checked.comparison->op.empty());
  CHECK(checked.comparison->op_error == 0);
  CHECK(checked.comparison->parameter_difference == 0);
  CHECK_FALSE(alone.comparison);
  CHECK(same_state(alone.run / "last.h5", checked.run / "last.h5"));
  CHECK(same_state(alone.run / "best.h5", checked.run / "best.h5"));
}

TEST_CASE("other rounding is no departure, and its extent is told") {
  const TemporaryFolder folder;
  const auto backends = GENERATE(as<const char*>{}, "check:cpu,reordered", "check:reordered,cpu");
  const RunResult run = train(checked_lenet(folder.path(), backends));
  REQUIRE(run.comparison);
  CHECK(run.comparison->op_error > 0);
  CHECK(run.comparison->op_error < 1);
  CHECK_THAT(run.comparison->op, Contains(" at step "));
  CHECK(run.comparison->parameter_difference > 0);
  CHECK(run.comparison->parameter_difference < 1e-5);
  CHECK_THAT(run.comparison->parameter, Contains("[") && Contains(" at step "));
  CHECK_THAT(text_of(run.run / "log.txt"), Contains("agreed with"));
}

TEST_CASE("one wrong element of one gradient at step 7 is found, and the guilty op named") {
  const TemporaryFolder folder;
  const std::string text = departure(checked_lenet(folder.path(), "check:cpu,wrong_relu"), folder / "run");
  CHECK_THAT(text, Contains("backends 'cpu' and 'wrong_relu' depart at step 7 in RELU_BACKWARD 'fc2.backward'"));
  CHECK_THAT(text, Contains("output 0 'fc2.backward' [0, 5]: on the same inputs cpu gives"));
  CHECK_THAT(text, Contains("and wrong_relu 0.25; they may differ by 0 (chooses, computes nothing)"));
  CHECK_THAT(text, Contains(": wrong_relu is wrong. 1 of 672 elements are off"));
  CHECK_THAT(text, Contains("is run by 'cpu' for cpu and by 'wrong_relu' for wrong_relu"));
  CHECK_THAT(text_of(folder / "run" / "log.txt"), Contains("depart at step 7"));
  CHECK(storage::load_checkpoint(folder / "run" / "last.h5").counters.at("step") == 0);
}

TEST_CASE("where the one that trains is wrong, the reference says so") {
  const TemporaryFolder folder;
  const std::string text = departure(checked_lenet(folder.path(), "check:wrong_relu,cpu"), folder / "run");
  CHECK_THAT(text, Contains("depart at step 7 in RELU_BACKWARD 'fc2.backward'"));
  CHECK_THAT(text, Contains("wrong_relu gives 0.25 and cpu "));
  CHECK_THAT(text, Contains(": wrong_relu is wrong."));
}

TEST_CASE("a wrong optimizer is named, and the parameter that shows it") {
  const TemporaryFolder folder;
  const std::string text = departure(checked_lenet(folder.path(), "check:cpu,wrong_optimizer"), folder / "run");
  CHECK_THAT(text, Contains("depart at step 1 in SGD_UPDATE 'optimizer', output 0 'parameters'"));
  CHECK_THAT(text, Contains(".weight[") || Contains(".bias["));
  CHECK_THAT(text, Contains(": wrong_optimizer is wrong."));
}

TEST_CASE("an op that writes where it must not is named, and not the one whose memory it was") {
  const TemporaryFolder folder;
  CHECK_THAT(departure(checked_lenet(folder.path(), "check:cpu,trespasser"), folder / "run"),
             Contains("backend 'trespasser' wrote where it must not, at step 1: RELU ") &&
                 Contains("run by 'trespasser', changed the memory of '") && Contains("which is no output of it"));
  CHECK_THAT(departure(checked_lenet(folder.path(), "check:cpu,meddler"), folder / "run2"),
             Contains("backend 'meddler' wrote where it must not, at step 1: BIAS_ADD 'conv1'") &&
                 Contains("changed its input 1, 'conv1.bias'"));
}

TEST_CASE("what goes wrong only in one go shows in the parameters") {
  const TemporaryFolder folder;
  const std::string text = departure(checked_lenet(folder.path(), "check:cpu,hasty"), folder / "run");
  CHECK_THAT(text,
             Contains("depart at step 1: each op agrees on the inputs that cpu had, but the whole step in one go"));
  CHECK_THAT(text, Contains("An op of 'hasty' may not wait"));
}

TEST_CASE("a checked run resumes as one, and is evaluated on the backend that trained it") {
  const TemporaryFolder folder;
  const RunResult straight =
      train(checked_lenet(folder.path(), "check:cpu,reordered", {{"training.max_steps", "8"}, {"schedule", "{}"}}));
  const RunResult part =
      train(checked_lenet(folder.path(), "check:cpu,reordered", {{"training.max_steps", "5"}, {"schedule", "{}"}}));
  CHECK(storage::load_checkpoint(part.run / "last.h5").backend == "check:cpu,reordered");
  const RunResult rest = resume(part.run, {{"training.max_steps", "8"}});
  CHECK(rest.backend == "check:cpu,reordered");
  REQUIRE(rest.comparison);
  CHECK(rest.comparison->steps == 3);
  CHECK(storage::load_checkpoint(straight.run / "last.h5").counters.at("step") == 8);
  CHECK(state_bytes(storage::load_checkpoint(straight.run / "last.h5")) ==
        state_bytes(storage::load_checkpoint(rest.run / "last.h5")));
  CHECK(evaluate({.path = rest.run, .overrides = {}}).rows == 32);
  CHECK_FALSE(resume(part.run, {{"backend", "cpu"}, {"training.max_steps", "9"}}).comparison);
}

TEST_CASE("batches that are streamed to the device reach the second backend too") {
  const TemporaryFolder folder;
  const RunResult resident = train(checked_lenet(folder.path(), "check:cpu,reordered"));
  const RunResult streamed = train(checked_lenet(folder.path(), "check:cpu,reordered", {{"data.residency", "stream"}}));
  REQUIRE(streamed.comparison);
  CHECK(streamed.comparison->steps == 12);
  CHECK(streamed.comparison->op_error == resident.comparison->op_error);
  CHECK(state_bytes(storage::load_checkpoint(streamed.run / "last.h5")) ==
        state_bytes(storage::load_checkpoint(resident.run / "last.h5")));
}

TEST_CASE("a second backend that can't serve is an error before the training") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(training::Session::open(checked_lenet(folder.path(), "check:cpu,absent")), Contains("'absent'"));
}
