// A device that is lost in the middle of a run: the message to the user, and the files that remain.
#include <cstdlib>
#include <functional>

#include "catch.hpp"
#include "common/process.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

const std::filesystem::path kProgram = GPUNN_PROGRAM;
const std::filesystem::path kPlugin = std::filesystem::path(GPUNN_TRAINING_SAMPLE_DIR) / "libgpunn_backend_losing.so";

// An environment variable, for a while; also of the processes that are started meanwhile.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

// Ten steps an epoch, three epochs.
Experiment losing(const TemporaryFolder& folder) {
  Experiment experiment = small_mlp(folder.path());
  experiment.plugins = {kPlugin};
  experiment.backend = "losing";
  return experiment;
}

RunOptions options_of(const std::filesystem::path& run, const std::filesystem::path& program) {
  RunOptions options;
  options.run_folder = run;
  options.program = program;
  return options;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const DeviceLostError& error) {
    CHECK(error.code() == ExitCode::failed);
    return error.what();
  }
  return "(no lost device)";
}

int64_t step_of(const std::filesystem::path& checkpoint) {
  return storage::load_checkpoint(checkpoint).counters.at("step");
}

}  // namespace

TEST_CASE(
    "a device that is lost in a step: the op is named, the checkpoint stands, and a resume gives the straight run") {
  const TemporaryFolder folder;
  const std::filesystem::path run = folder / "run";
  const RunResult straight = train(losing(folder), options_of(folder / "straight", {}));
  {
    const Variable lose("GPUNN_TEST_LOSE", "train:17");
    const std::string error = error_of([&] { train(losing(folder), options_of(run, kProgram)); });
    INFO(error);
    CHECK_THAT(error, Contains("the device was lost in step"));
    CHECK_THAT(error, Contains("(DEVICE_LOST): an address that is nowhere"));
    CHECK_THAT(error, Contains("Replayed in a new process, the device is lost in TABLE_LOAD '"));
    CHECK_THAT(error, Contains("' of step 18, a kernel of 'losing'. "));
    CHECK_THAT(error, Contains("The last checkpoint, " + (run / "last.h5").string() + ", stands"));
    CHECK_THAT(error, Contains("`gpunn resume " + run.string() + "` goes on from it"));
  }
  CHECK(step_of(run / "last.h5") == 10);
  resume(run, {});
  CHECK(same_state(straight.run / "last.h5", run / "last.h5"));
}

TEST_CASE("a device that is lost in an evaluation") {
  const TemporaryFolder folder;
  const Variable lose("GPUNN_TEST_LOSE", "eval:1");
  const std::string error = error_of([&] { train(losing(folder), options_of(folder / "run", kProgram)); });
  INFO(error);
  CHECK_THAT(error, Contains("the device was lost after step 10 (epoch 1)"));
  CHECK_THAT(error, Contains("the device is lost in SAMPLE_INDICES '"));
  CHECK_THAT(error, Contains("of the evaluation after step 10"));
  CHECK(step_of(folder / "run" / "last.h5") == 0);
}

TEST_CASE("a loss that does not repeat is said not to") {
  const TemporaryFolder folder;
  const Variable lose("GPUNN_TEST_LOSE", "train:3");
  const Variable once("GPUNN_TEST_LOSE_ONCE", (folder / "lost").string());
  const std::string error = error_of([&] { train(losing(folder), options_of(folder / "run", kProgram)); });
  INFO(error);
  CHECK_THAT(error, Contains("ran op by op without a fault"));
}

TEST_CASE("without the program gpunn, or where it does not start, the error says how to look for the op") {
  const TemporaryFolder folder;
  const Variable lose("GPUNN_TEST_LOSE", "train:12");
  const std::string run = (folder / "run").string();
  const bool absent = GENERATE(true, false);
  const std::string error =
      error_of([&] { train(losing(folder), options_of(run, absent ? folder / "gpunn" : std::filesystem::path())); });
  INFO(error);
  if (absent) CHECK_THAT(error, Contains("Replaying the steps in a new process failed: "));
  if (!absent) CHECK_THAT(error, Contains("To find the op, run `gpunn diagnose " + run));
  CHECK_THAT(error, Contains("stands"));

  const FaultReport report = diagnose({.run = run});  // in this process, which has lost nothing but a pretended device
  CHECK(report.found);
  CHECK(report.step == 13);
  CHECK(report.first_step == 11);
  CHECK(report.last_step == 20);
  CHECK_THAT(report.op, Contains("TABLE_LOAD"));

  const FaultReport earlier = diagnose({.run = run, .first_step = 15, .last_step = 16});
  CHECK(earlier.found);
  CHECK(earlier.op.empty());
  CHECK_THAT(earlier.text(), Contains("the device is lost before steps 15 to 16"));

  CHECK_THROWS_WITH(diagnose({.run = run, .first_step = 10, .last_step = 11}), Contains("is of step 10 of 30"));
  CHECK_THROWS_WITH(diagnose({.run = folder.path()}), Contains("no run folder"));
}

TEST_CASE("the program: a lost device is exit code 1, and so is a diagnosis that finds it") {
  const TemporaryFolder folder;
  const std::string experiment = (std::filesystem::path(GPUNN_SOURCE_DIR) / "experiments" / "mlp_mnist.yaml").string();
  const std::vector<std::string> arguments{
      "run",       experiment,
      "--backend", "losing",
      "--plugin",  kPlugin.string(),
      "--set",     "data={dataset: digits, synthetic_train: 640, synthetic_test: 200}",
      "--epochs",  "1",
      "--runs",    folder.path().string(),
      "--json"};
  {
    const Variable lose("GPUNN_TEST_LOSE", "train:2");
    const ProcessResult result = run_process(kProgram, arguments);
    INFO(result.output);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.output, Contains("of step 3, a kernel of 'losing'"));
    const std::filesystem::path runs = *std::filesystem::directory_iterator(folder.path());
    const std::filesystem::path run = *std::filesystem::directory_iterator(runs);
    const ProcessResult diagnosis = run_process(kProgram, {"diagnose", run.string()});
    CHECK(diagnosis.exit_code == 1);
    CHECK_THAT(diagnosis.output, Contains("the device is lost in TABLE_LOAD"));
  }
  CHECK(run_process(kProgram, arguments).exit_code == 0);
}
