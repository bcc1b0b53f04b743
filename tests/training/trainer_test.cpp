#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "runs/run_folder.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

// Remembers what it is told.
class Recorder : public TrainingListener {
 public:
  void on_message(const std::string& text) override { messages.push_back(text); }
  void on_step(const StepReport& report) override { steps.push_back(report); }
  void on_epoch(const EpochReport& report) override { epochs.push_back(report); }
  std::vector<std::string> messages;
  std::vector<StepReport> steps;
  std::vector<EpochReport> epochs;
};

}  // namespace

TEST_CASE("a profiled training reaches the same weights, bit for bit") {
  const TemporaryFolder runs;
  const auto trained = [&](const std::string& name, std::optional<ProfileOptions> profile) {
    RunOptions options;
    options.run_folder = runs.path() / name;
    options.profile = std::move(profile);
    return train(small_lenet(runs.path(), {{"training.epochs", "4"}}), options);
  };
  const RunResult plain = trained("plain", std::nullopt);
  const RunResult profiled = trained("profiled", ProfileOptions{.file = {}, .steps = 5, .warmup = 2});
  CHECK_FALSE(plain.profile);
  CHECK(same_state(plain.run / "last.h5", profiled.run / "last.h5"));
  REQUIRE(profiled.profile);
  CHECK(profiled.profile->steps == 5);
  CHECK(profiled.profile->file == profiled.run / "trace.json");
  CHECK(std::filesystem::file_size(profiled.profile->file) > 10'000);
  CHECK(profiled.profile->whole_step_seconds > 0);
  CHECK(profiled.profile->ceiling_gflops > 0);
}

TEST_CASE("LeNet learns drawn digits, and its run folder tells how") {
  const TemporaryFolder folder;
  Recorder recorder;
  const RunResult result =
      train(small_lenet(folder.path(), {{"data.synthetic_train", "4000"}, {"training.epochs", "4"}}),
            {.listener = &recorder, .stop = nullptr, .run_folder = {}});
  CHECK(result.backend == "cpu");
  CHECK(recorder.epochs.size() == 4);
  CHECK(result.final_evaluation.scores.value("accuracy") > 0.8);
  CHECK(result.final_evaluation.rows == 200);
  CHECK(recorder.epochs[3].train_loss < 0.5 * recorder.epochs[0].train_loss);

  for (const char* file :
       {"experiment.yaml", "resolved.yaml", "environment.json", "metrics.jsonl", "metrics.csv", "last.h5", "best.h5"}) {
    CHECK(std::filesystem::exists(result.run / file));
  }
  std::ifstream records(result.run / "metrics.jsonl");
  int epochs = 0, steps = 0;
  for (std::string line; std::getline(records, line);) {
    const auto record = nlohmann::json::parse(line);
    (record.at("kind") == "epoch" ? epochs : steps) += 1;
  }
  CHECK(epochs == 4);
  CHECK(steps > 4);
  const auto environment = nlohmann::json::parse(std::ifstream(result.run / "environment.json"));
  CHECK(environment.at("backend") == "cpu");
  CHECK(environment.at("data").at("name") == "digits");

  // The best checkpoint evaluates to what was recorded of it.
  const EvalReport best = evaluate({.path = result.run, .overrides = {}});
  CHECK(best.scores.value("accuracy") == result.best_metric);
  const auto predictions =
      predict({.path = result.run, .overrides = {}}, {.inputs = {}, .rows = {0, 1, 2}, .top_k = 3});
  REQUIRE(predictions.size() == 3);
  CHECK(predictions[0].top.size() == 3);
  CHECK(predictions[0].top[0].probability >= predictions[0].top[1].probability);
  CHECK(predictions[0].label.has_value());
}

TEST_CASE("an overlay in other memory trains to the same weights, through host copies") {
  const TemporaryFolder folder;
  const std::string plugins = "[" GPUNN_SAMPLE_DIR "/on_cpu]";
  const auto mlp = [&](const std::string& backend, const std::string& host_copies) {
    return small_mlp(folder.path(), {{"backend", backend}, {"plugins", plugins}, {"host_copies", host_copies}});
  };
  Recorder near, far;
  const RunResult result = train(mlp("relu_on_cpu", "true"), {.listener = &near, .stop = nullptr, .run_folder = {}});
  CHECK(near.messages.empty());
  const RunResult copied = train(mlp("far_relu_on_cpu", "true"), {.listener = &far, .stop = nullptr, .run_folder = {}});
  REQUIRE(far.messages.size() == 1);
  CHECK_THAT(far.messages[0], Contains("WARNING: 'far_relu_on_cpu' works in memory domain 'mars:0', 'cpu' in 'host'") &&
                                  Contains("as host_copies allows"));
  CHECK(same_state(result.run / "last.h5", copied.run / "last.h5"));
  CHECK_THROWS_WITH(train(mlp("far_relu_on_cpu", "false")), Contains("--set host_copies=true"));
}

TEST_CASE("the perceptron separates its points") {
  const TemporaryFolder folder;
  const RunResult result = train(
      load_experiment(experiment_file("perceptron_points"), {{"backend", "cpu"}, {"runs", folder.path().string()}}));
  CHECK(result.final_evaluation.scores.value("accuracy") == 1.0);
  CHECK(result.epochs.back().train_scores.value("accuracy") == 1.0);
}

namespace {

// The message of a run that diverges; its folder is kept.
std::string divergence(const Experiment& experiment, const std::filesystem::path& run) {
  try {
    train(experiment, {.listener = nullptr, .stop = nullptr, .run_folder = run});
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::diverged);
    return error.what();
  }
  FAIL("it did not diverge");
  return "";
}

}  // namespace

TEST_CASE("a loss that becomes NaN ends the run with the step and the op, and the checkpoint stands") {
  const TemporaryFolder folder;
  const std::vector<Override> wild{{"optimizer.learning_rate", "1000"}, {"schedule", "{type: constant}"}};
  const std::string text = divergence(small_lenet(folder.path(), wild), folder / "run");
  CHECK_THAT(text, Contains("the first op with a non-finite result is"));
  CHECK_THAT(text, Contains("at step"));
  CHECK_THAT(text, !Contains("TABLE_STORE"));
  CHECK_NOTHROW(storage::load_checkpoint(folder / "run" / "last.h5"));

  // Replayed from the step before, the culprit is the same.
  std::vector<Override> saved_often = wild;
  saved_often.push_back({"checkpoint.every_steps", "1"});
  const std::string again = divergence(small_lenet(folder.path(), saved_often), folder / "again");
  const auto culprit = [](const std::string& message) {
    return message.substr(message.find("the first op"), message.find(". The last") - message.find("the first op"));
  };
  CHECK(culprit(again) == culprit(text));
}

TEST_CASE("parameters that are no numbers never replace a good checkpoint") {
  // The update of the very last step overflows: its loss, taken before, does not show it.
  const TemporaryFolder folder;
  const std::vector<Override> last_step{{"optimizer.learning_rate", "1000"},
                                        {"schedule", "{type: constant}"},
                                        {"optimizer.weight_decay", "0"},
                                        {"training.max_steps", "1"},
                                        {"training.epochs", "1"}};
  Experiment experiment = small_lenet(folder.path(), last_step);
  experiment.optimizer.learning_rate = 1e38;
  CHECK_THAT(divergence(experiment, folder / "run"), Contains("at step 1"));
  const storage::Checkpoint kept = storage::load_checkpoint(folder / "run" / "last.h5");
  CHECK(kept.counters.at("step") == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "run" / "best.h5"));
}

TEST_CASE("two processes do not train in one run folder") {
  const TemporaryFolder folder;
  const RunResult run = train(small_lenet(folder.path(), {{"training.epochs", "1"}}));
  const auto held = training::RunFolder::open(run.run);
  CHECK_THROWS_WITH(resume(run.run, {{"training.epochs", "2"}}), Contains("another process is training"));
}

TEST_CASE("a resume that would lose its place is refused") {
  const TemporaryFolder folder;
  const RunResult run = train(small_lenet(folder.path(), {{"training.epochs", "2"}}));
  CHECK_THROWS_WITH(resume(run.run, {{"training.epochs", "1"}}), Contains("has done 20 steps"));
  CHECK_THROWS_WITH(resume(run.run, {{"data.batch_size", "32"}, {"training.epochs", "9"}}),
                    Contains("its place in the data would be lost"));
  std::filesystem::remove(run.run / "metrics.jsonl");
  std::filesystem::remove(run.run / "metrics.csv");
  CHECK(resume(run.run, {{"training.epochs", "3"}}).epochs.size() == 1);
}

TEST_CASE("a data set used in place of another is announced, and pinned in the checkpoint") {
  const TemporaryFolder folder;
  Recorder recorder;
  Experiment experiment = small_mlp(folder.path(), {{"training.epochs", "1"}});
  experiment.data.dataset = "mnist";
  experiment.data.offline_fallback = "digits";
  setenv("GPUNN_OFFLINE", "1", 1);
  const std::string place = std::getenv("GPUNN_DATA_DIR") != nullptr ? std::getenv("GPUNN_DATA_DIR") : "";
  const std::string cache = std::getenv("XDG_CACHE_HOME") != nullptr ? std::getenv("XDG_CACHE_HOME") : "";
  setenv("GPUNN_DATA_DIR", folder.path().c_str(), 1);
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  const RunResult run = train(experiment, {.listener = &recorder, .stop = nullptr, .run_folder = {}});
  REQUIRE(recorder.messages.size() == 1);
  CHECK_THAT(recorder.messages[0], Contains("'mnist' was not found: 'digits' is used instead"));
  const std::string pinned = storage::load_checkpoint(run.run / "last.h5").experiment;
  CHECK(parse_experiment(pinned, "pinned").data.dataset == "digits");
  CHECK(parse_experiment(pinned, "pinned").data.offline_fallback.empty());
  place.empty() ? unsetenv("GPUNN_DATA_DIR") : setenv("GPUNN_DATA_DIR", place.c_str(), 1);
  cache.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", cache.c_str(), 1);
}

TEST_CASE("a plugin that was named and can't be used is an error") {
  const TemporaryFolder folder;
  Experiment experiment = small_mlp(folder.path());
  experiment.plugins = {folder / "nosuch.so"};
  CHECK_THROWS_WITH(training::Session::open(experiment), Contains("nosuch.so can't be used"));
  experiment.plugins = {folder.write("text.so", "not a plugin")};
  CHECK_THROWS_WITH(training::Session::open(experiment), Contains("NOT_A_PLUGIN"));
}

TEST_CASE("a checkpoint of another model is refused with every difference") {
  const TemporaryFolder folder;
  const RunResult mlp = train(small_mlp(folder.path(), {{"training.epochs", "1"}}));
  training::Session session = training::Session::open(small_lenet(folder.path()));
  const storage::Checkpoint foreign = storage::load_checkpoint(mlp.run / "last.h5");
  CHECK_THROWS_WITH(session.restore_parameters(foreign), Contains("of another model") && Contains("'conv1.weight'") &&
                                                             Contains("is missing") && Contains("is not in the model"));
  CHECK_THROWS_WITH(resume(mlp.run, {{"model.parameters.width", "99"}}), Contains("no layer of the model uses"));
}

TEST_CASE("peak memory as planned is what is allocated") {
  const TemporaryFolder folder;
  training::Session session = training::Session::open(small_lenet(folder.path()));
  session.train_step();
  CHECK(session.arena_bytes() == session.training().plan.arena_bytes);
  session.evaluate();
  CHECK(session.arena_bytes() == session.training().plan.arena_bytes);
  CHECK(session.backend().allocated_bytes() ==
        session.arena_bytes() + session.persistent_bytes() + session.data_bytes());
}

TEST_CASE("an evaluation batch larger than a training batch is planned for from the start") {
  const TemporaryFolder folder;
  training::Session session =
      training::Session::open(small_lenet(folder.path(), {{"data.batch_size", "8"}, {"data.eval_batch_size", "200"}}));
  session.train_step();
  const uint64_t planned = session.arena_bytes();
  CHECK(planned > session.training().plan.arena_bytes);
  session.evaluate();
  session.train_step();
  CHECK(session.arena_bytes() == planned);
}

TEST_CASE("a training too long for a learning-rate table is refused") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(
      training::Session::open(small_mlp(folder.path(), {{"training.epochs", "1000000"}, {"data.batch_size", "4"}})),
      Contains("steps that a learning-rate table holds"));
}

TEST_CASE("a steady step allocates nothing") {
  const TemporaryFolder folder;
  training::Session session = training::Session::open(small_lenet(folder.path()));
  session.train_step();
  const int64_t before = session.backend().allocations();
  for (int i = 0; i < 20; ++i) session.train_step();
  CHECK(session.backend().allocations() == before);
  CHECK(session.step() == 21);
}

TEST_CASE("early stopping ends a run that no longer improves") {
  const TemporaryFolder folder;
  const RunResult result = train(small_mlp(folder.path(), {{"training.epochs", "50"},
                                                           {"optimizer.learning_rate", "1e-12"},
                                                           {"early_stopping", "{monitor: accuracy, patience: 2}"}}));
  CHECK(result.stopped_early);
  CHECK(result.epochs.size() < 10);
  const RunResult again = resume(result.run, {});
  CHECK(again.epochs.empty());
}

TEST_CASE("any metric stops a run, which may end with the best weights") {
  const TemporaryFolder folder;
  const bool restored = GENERATE(true, false);
  const std::string watch =
      std::string("{monitor: loss, patience: 2, restore_best: ") + (restored ? "true}" : "false}");
  const RunResult result = train(small_mlp(folder.path(), {{"training.epochs", "60"},
                                                           {"optimizer.learning_rate", "0.3"},
                                                           {"checkpoint.monitor", "loss"},
                                                           {"early_stopping", watch}}));
  REQUIRE(result.stopped_early);
  const EpochReport& best = result.epochs.at(static_cast<std::size_t>(result.best_epoch - 1));
  CHECK(result.best_epoch == result.epochs.back().epoch - 2);
  CHECK(result.best_metric == best.evaluation.loss);
  CHECK(result.final_evaluation.loss == (restored ? best : result.epochs.back()).evaluation.loss);
  // The last state is still there to go on from.
  CHECK(storage::load_checkpoint(result.run / "last.h5").counters.at("step") == result.epochs.back().global_step);
  CHECK(resume(result.run, {{"early_stopping.patience", "3"}}).epochs.size() >= 1);
}

TEST_CASE("a run may stop on what it measures while training") {
  const TemporaryFolder folder;
  const RunResult result =
      train(small_mlp(folder.path(), {{"training.epochs", "5"},
                                      {"optimizer.learning_rate", "1e-12"},
                                      {"early_stopping", "{monitor: train_loss, patience: 2, min_delta: 10}"}}));
  CHECK(result.stopped_early);
  CHECK(result.epochs.size() == 3);
}

TEST_CASE("the last rows of data are used where the last batch is kept, and counted once in an evaluation") {
  const TemporaryFolder folder;
  training::Session session = training::Session::open(small_mlp(
      folder.path(), {{"data.synthetic_train", "100"}, {"data.drop_last", "false"}, {"data.eval_batch_size", "77"}}));
  CHECK(session.steps_per_epoch() == 2);
  for (int i = 0; i < 2; ++i) session.train_step();
  CHECK(session.sums().total(tasks::Total::rows) == 100);
  CHECK(session.evaluate().rows == 200);
}

TEST_CASE("a data set smaller than a batch, and a model of other classes, are refused by name") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(training::Session::open(small_mlp(folder.path(), {{"data.batch_size", "5000"}})),
                    Contains("data.batch_size 5000 is larger than the 640 training samples"));
  CHECK_THROWS_WITH(training::Session::open(small_mlp(folder.path(), {{"model.parameters.classes", "7"}})).train_step(),
                    Contains("mlp.yaml:") && Contains("the data has 10 classes"));
}

TEST_CASE("a mean squared error trains too") {
  const TemporaryFolder folder;
  const RunResult result = train(small_mlp(folder.path(), {{"loss", "mean_squared_error"}, {"training.epochs", "5"}}));
  CHECK(result.epochs.back().train_loss < result.epochs.front().train_loss);
}
