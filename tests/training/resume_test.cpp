// A straight run equals an interrupted and resumed one, bit for bit, whatever interrupts it.
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("a run stopped in the middle of an epoch and resumed gives the straight run's bits") {
  const TemporaryFolder folder;
  const std::string kind = GENERATE("lenet", "mlp", "mlp whose learning rate reacts");
  std::vector<Override> more{{"training.log_every_steps", "1"}};
  if (kind == "mlp whose learning rate reacts") {  // after the second epoch, to a mean that an interruption cuts in two
    more.push_back({"schedule",
                    "{type: reduce_on_plateau, monitor: train_loss, patience: 0, threshold: 900, "
                    "threshold_mode: absolute}"});
  }
  const Experiment experiment = kind == "lenet" ? small_lenet(folder.path(), more) : small_mlp(folder.path(), more);
  const RunResult straight =
      train(experiment, {.listener = nullptr, .stop = nullptr, .run_folder = folder.path() / "a"});

  StopAfter stop(13);  // in the second epoch of ten steps
  RunResult part = train(experiment, {.listener = &stop, .stop = &stop.stop, .run_folder = folder.path() / "b"});
  CHECK(part.interrupted);
  const auto stopped_at = storage::load_checkpoint(part.run / "last.h5").counters.at("step");
  CHECK(stopped_at > 10);
  CHECK(stopped_at < 30);

  part = resume(part.run, {});
  CHECK_FALSE(part.interrupted);
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  CHECK(same_state(straight.run / "best.h5", part.run / "best.h5"));
  CHECK(part.final_evaluation.loss == straight.final_evaluation.loss);
  CHECK(lines_of(part.run / "metrics.csv").size() == lines_of(straight.run / "metrics.csv").size());
}

TEST_CASE("a run killed at any moment leaves a checkpoint that resumes to the straight run's bits") {
  const TemporaryFolder folder;
  const Experiment experiment = small_lenet(folder.path(), {{"checkpoint.every_steps", "3"}});
  const RunResult straight =
      train(experiment, {.listener = nullptr, .stop = nullptr, .run_folder = folder.path() / "straight"});

  int resumed = 0;
  for (const int milliseconds : {5, 20, 40, 60, 80, 100, 130, 160}) {
    const std::filesystem::path run = folder.path() / ("killed-" + std::to_string(milliseconds));
    const pid_t child = fork();
    if (child == 0) {
      // One thread: an OpenMP team does not survive a fork.
      Experiment alone = experiment;
      alone.threads = 1;
      train(alone, {.listener = nullptr, .stop = nullptr, .run_folder = run});
      _exit(0);
    }
    // Killed so long after its folder appeared; before that there is nothing to lose.
    for (int i = 0; i < 20000 && !std::filesystem::exists(run); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(std::filesystem::exists(run));
    REQUIRE_NOTHROW(storage::load_checkpoint(run / "last.h5"));
    resume(run, {});
    const auto end = storage::load_checkpoint(run / "last.h5");
    CHECK(state_bytes(end) == state_bytes(storage::load_checkpoint(straight.run / "last.h5")));
    CHECK(lines_of(run / "metrics.csv").size() == lines_of(straight.run / "metrics.csv").size());
    ++resumed;
  }
  CHECK(resumed == 8);
}

TEST_CASE("the same seed gives the same bits at any thread count, another seed others") {
  const TemporaryFolder folder;
  std::vector<std::vector<std::byte>> first;
  for (const char* threads : {"1", "2", "3", "5"}) {
    const RunResult run = train(small_lenet(folder.path(), {{"training.threads", threads}, {"training.epochs", "1"}}));
    const auto state = state_bytes(storage::load_checkpoint(run.run / "last.h5"));
    if (first.empty()) first = state;
    CHECK(state == first);
  }
  const RunResult other = train(small_lenet(folder.path(), {{"training.seed", "2"}, {"training.epochs", "1"}}));
  CHECK(state_bytes(storage::load_checkpoint(other.run / "last.h5")) != first);
}

TEST_CASE("a finished run can be resumed for more epochs, and for none") {
  const TemporaryFolder folder;
  const RunResult first = train(small_lenet(folder.path(), {{"training.epochs", "1"}}));
  const RunResult again = resume(first.run, {});
  CHECK(again.epochs.empty());
  CHECK(again.final_evaluation.scores.value("accuracy") == first.final_evaluation.scores.value("accuracy"));
  const RunResult more = resume(first.run, {{"training.epochs", "2"}});
  REQUIRE(more.epochs.size() == 1);
  CHECK(more.epochs[0].epoch == 2);
  CHECK(lines_of(first.run / "metrics.csv").size() == 3);
}

TEST_CASE("every optimizer's state survives a resume") {
  const TemporaryFolder folder;
  const std::string kind = GENERATE(from_range(element_wise_optimizers()));
  std::vector<Override> overrides{{"training.log_every_steps", "1"},
                                  {"training.epochs", "2"},
                                  {"optimizer", "{type: " + kind + ", learning_rate: 0.002}"}};
  const Experiment experiment = small_mlp(folder.path(), overrides);
  const RunResult straight = train(experiment);
  StopAfter stop(5);
  const RunResult part = train(experiment, {.listener = &stop, .stop = &stop.stop, .run_folder = {}});
  resume(part.run, {});
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
}
