// Good experiments: values, defaults, short forms, paths, overrides.
#include <gpunn/experiment.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace config_test;

TEST_CASE("every kind of value arrives") {
  const TemporaryFolder folder;
  folder.write("m.yaml", "layers: [linear: {units: 3}]\n");
  const fs::path file = folder.write("e.yaml", R"(
name: trial-1
model: m.yaml
data: {dataset: mnist, path: sets, offline_fallback: digits, batch_size: 1e2, drop_last: false, mean: [0.5], stddev: 2}
loss: mean_squared_error
optimizer: {type: rmsprop, learning_rate: 2e-5, momentum: .5, alpha: 0.9}
schedule: {type: step, step_epochs: 2.5, gamma: 0.3, warmup_epochs: 1}
training: {epochs: 7, seed: 9223372036854775807, precision: tf32, deterministic: true, threads: 3, max_steps: 50}
early_stopping: {monitor: loss, patience: 2, min_delta: 1e-3}
checkpoint: {every_epochs: 0, every_steps: 10, monitor: loss}
backend: cpu
device: 1
plugins: [a.so, ../b]
runs: out
)");
  const Experiment e = load_experiment(file);
  CHECK(e.name == "trial-1");
  CHECK(e.data.dataset == "mnist");
  CHECK(e.data.path == folder.path() / "sets");
  CHECK(e.data.offline_fallback == "digits");
  CHECK(e.data.batch_size == 100);
  CHECK_FALSE(e.data.drop_last);
  CHECK(e.data.shuffle);
  CHECK(e.data.mean == std::vector<double>{0.5});
  CHECK(e.data.stddev == std::vector<double>{2});
  CHECK(e.loss == LossKind::mean_squared_error);
  CHECK(e.optimizer.kind == OptimizerKind::rmsprop);
  CHECK(e.optimizer.learning_rate == 2e-5);
  CHECK(e.optimizer.momentum == 0.5);
  CHECK(e.optimizer.alpha == 0.9);
  CHECK(e.schedule.kind == ScheduleKind::step);
  CHECK(e.schedule.step_epochs == 2.5);
  CHECK(e.schedule.gamma == 0.3);
  CHECK(e.schedule.warmup_epochs == 1);
  CHECK(e.epochs == 7);
  CHECK(e.seed == 9223372036854775807U);
  CHECK(e.precision == Precision::tf32);
  CHECK(e.deterministic);
  CHECK(e.threads == 3);
  CHECK(e.max_steps == 50);
  REQUIRE(e.early_stopping);
  CHECK(e.early_stopping->monitor == Metric::loss);
  CHECK(e.early_stopping->patience == 2);
  CHECK(e.early_stopping->min_delta == 1e-3);
  CHECK(e.checkpoint.every_epochs == 0);
  CHECK(e.checkpoint.every_steps == 10);
  CHECK(e.checkpoint.monitor == Metric::loss);
  CHECK(e.backend == "cpu");
  CHECK(e.device == 1);
  CHECK(e.plugins == std::vector<fs::path>{folder.path() / "a.so", folder.path().parent_path() / "b"});
  CHECK(e.runs == "out");  // relative to the working directory
  REQUIRE(e.model.layers.size() == 1);
  CHECK(e.model.file == folder.path() / "m.yaml");
  CHECK(e.model.text == "layers: [linear: {units: 3}]\n");
}

TEST_CASE("a backend is a name or a file") {
  const TemporaryFolder folder;
  const auto backend = [&](const std::string& text, const std::vector<Override>& overrides = {}) {
    return load_experiment(folder.write("e.yaml", kSound + "backend: " + text), overrides).backend;
  };
  CHECK(backend("cpu") == "cpu");
  CHECK(backend("auto") == "auto");
  CHECK(backend("build/libmine.so") == (folder.path() / "build/libmine.so").string());
  CHECK(backend("/usr/lib/libmine.so") == "/usr/lib/libmine.so");
  // What is given on the command line is meant from where one stands.
  CHECK(backend("cpu", {{"backend", "./mine.so"}}) == (fs::current_path() / "mine.so").string());
}

TEST_CASE("what is left out has its default") {
  const TemporaryFolder folder;
  const Experiment e = load_experiment(folder.write("first try.yaml", kSound));
  CHECK(e.name == "first_try");
  CHECK(e.data.batch_size == 128);
  CHECK(e.optimizer.kind == OptimizerKind::sgd);
  CHECK(e.optimizer.learning_rate == 0.01);
  CHECK(e.schedule.kind == ScheduleKind::constant);
  CHECK(e.epochs == 10);
  CHECK(e.backend == "auto");
  CHECK_FALSE(e.early_stopping);
  CHECK(e.runs == "runs");
}

TEST_CASE("short forms") {
  const Experiment e = parse_experiment(
      "model: {layers: [linear: {units: 2}]}\ndata: points\noptimizer: adam\nschedule: cosine\n", "e.yaml");
  CHECK(e.data.dataset == "points");
  CHECK(e.optimizer.kind == OptimizerKind::adam);
  CHECK(e.schedule.kind == ScheduleKind::cosine);
  CHECK(parse_experiment(kSound + "early_stopping: {}\n", "e").early_stopping->patience == 5);
  CHECK_FALSE(parse_experiment(kSound + "early_stopping:\n", "e").early_stopping);
}

TEST_CASE("overrides are typed and win") {
  const auto with = [](const std::vector<Override>& overrides) {
    return parse_experiment(kSound, "e.yaml", overrides);
  };
  const Experiment e = with({{"optimizer.learning_rate", "2e-5"},
                             {"training.epochs", "3"},
                             {"backend", "cpu"},
                             {"data.batch_size", "7"},
                             {"data.mean", "[0.1, 0.2]"},
                             {"data.stddev", "[1, 2]"},
                             {"early_stopping.patience", "2"},
                             {"training.epochs", "4"}});
  CHECK(e.optimizer.learning_rate == 2e-5);
  CHECK(e.epochs == 4);  // the last of two
  CHECK(e.backend == "cpu");
  CHECK(e.data.batch_size == 7);
  CHECK(e.data.mean == std::vector<double>{0.1, 0.2});
  CHECK(e.early_stopping->patience == 2);
  CHECK(with({{"optimizer", "adam"}, {"optimizer.learning_rate", "0.5"}}).optimizer.learning_rate == 0.5);
  CHECK(with({{"optimizer.learning_rate", "0.5"}, {"optimizer", "adam"}}).optimizer.learning_rate == 0.5);
  CHECK_FALSE(parse_experiment(kSound + "early_stopping: {}\n", "e", {{"early_stopping", "null"}}).early_stopping);
}

TEST_CASE("overrides reach a model's parameters") {
  const TemporaryFolder folder;
  folder.write("models/m.yaml", "parameters: {width: 3}\nlayers: [linear: {units: $width}]\n");
  folder.write("models/n.yaml", "layers: [linear: {units: 9}]\n");
  const fs::path file = folder.write("e/e.yaml", "model: ../models/m.yaml\ndata: points\n");
  const auto units = [&](const std::vector<Override>& overrides) {
    return load_experiment(file, overrides).model.layers.front().parameters.front().values.front();
  };
  CHECK(units({}) == "3");
  CHECK(units({{"model.parameters.width", "256"}}) == "256");
  CHECK(units({{"model", (folder.path() / "models/n.yaml").string()}}) == "9");
  CHECK(load_experiment(file, {{"model.parameters.width", "256"}}).model.parameters.at("width") == "256");
  CHECK_THROWS_WITH(units({{"model.parameters.widht", "1"}}),
                    Contains("--set model.parameters.widht: unknown parameter 'widht' of the model 'm'; did you mean "
                             "'width'?"));
  CHECK_THROWS_WITH(units({{"model.parameters.width", "wide"}}),
                    Contains("--set model.parameters.width: model parameter 'width': expected a value like '3', found "
                             "'wide'"));
}

TEST_CASE("paths on the command line are the working directory's") {
  const Experiment e = parse_experiment(kSound, "there/e.yaml", {{"data.path", "here"}});
  CHECK(e.data.path == fs::current_path() / "here");
}
