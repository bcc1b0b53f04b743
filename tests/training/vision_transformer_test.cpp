// models/vit.yaml, small, and layers whose padding differs by side: that they train, alike in every way that a run
// goes.
#include "catch.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

Experiment on_digits(const std::filesystem::path& runs, const std::string& model, const std::string& training,
                     const std::vector<Override>& more = {}) {
  return parse_experiment("name: small\nmodel: " + model +
                              "\ndata: {dataset: digits, synthetic_train: 1280, synthetic_test: 200, batch_size: 60, "
                              "drop_last: false}\n" +
                              training + "\nbackend: cpu\nruns: " + runs.string() + "\n",
                          "small.yaml", more);
}

Experiment small_vit(const std::filesystem::path& runs, const std::vector<Override>& more = {}) {
  return on_digits(runs,
                   "{file: " + std::string(GPUNN_SOURCE_DIR) +
                       "/models/vit.yaml, parameters: {classes: 10, patch: 7, width: 32, depth: 2, heads: 2, mlp: 64, "
                       "attention_dropout: 0.1}}",
                   "optimizer: {type: adamw, learning_rate: 5e-3, weight_decay: 0.01}\nschedule: one_cycle\n"
                   "training: {epochs: 16, threads: 1}",
                   more);
}

}  // namespace

TEST_CASE("a small vision transformer learns digits") {
  const TemporaryFolder folder;
  CHECK(train(small_vit(folder.path())).final_evaluation.scores.value("accuracy") > 0.6);
}

TEST_CASE("a vision transformer, stopped and resumed, gives the straight run's bits, on any number of threads") {
  const TemporaryFolder folder;
  const std::vector<Override> short_run{{"training.epochs", "2"}, {"data.synthetic_train", "200"}};
  const RunResult straight = train(small_vit(folder.path(), short_run));
  StopAfter stop(5);
  const RunResult part =
      train(small_vit(folder.path(), short_run), {.listener = &stop, .stop = &stop.stop, .run_folder = {}});
  CHECK(part.interrupted);
  resume(part.run, {});
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  std::vector<Override> threads = short_run;
  threads.push_back({"training.threads", "2"});
  CHECK(same_state(straight.run / "last.h5", train(small_vit(folder.path(), threads)).run / "last.h5"));
}

TEST_CASE("layers whose padding differs by side learn digits, each op the same twice") {
  const TemporaryFolder folder;
  const Experiment experiment =
      on_digits(folder.path(),
                "{layers: [conv2d: {filters: 6, kernel: 4, stride: 2, padding: [1, 2, 2, 1], activation: relu}, "
                "max_pool: {window: 3, stride: 2, padding: [0, 1, 1, 0]}, "
                "conv2d: {filters: 12, kernel: 4, padding: same, activation: relu}, "
                "avg_pool: {window: 2, padding: [1, 0, 0, 1], count_padding: false}, "
                "max_pool: {window: 2, ceil_mode: true}, flatten, linear: {units: 10}]}",
                "optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9}\ntraining: {epochs: 3, threads: 1}",
                {{"backend", "check:cpu,cpu"}});
  CHECK(train(experiment).final_evaluation.scores.value("accuracy") > 0.5);
}
