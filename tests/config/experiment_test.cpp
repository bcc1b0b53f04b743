// Good experiments: values, defaults, short forms, paths, overrides.
#include <gpunn/experiment.hpp>

#include <variant>

#include "catch.hpp"
#include "support.hpp"
#include "tasks/task.hpp"

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
schedule: {type: step, step_size: 2.5, gamma: 0.3, warmup_epochs: 1}
training: {epochs: 7, seed: 9223372036854775807, precision: tf32, deterministic: true, threads: 3, max_steps: 50}
early_stopping: {monitor: loss, patience: 2, min_delta: 1e-3, restore_best: true}
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
  CHECK(std::holds_alternative<MeanSquaredError>(e.loss.kind));
  CHECK(e.optimizer.learning_rate == 2e-5);
  CHECK(std::get<RmsProp>(e.optimizer.kind).momentum == 0.5);
  CHECK(std::get<RmsProp>(e.optimizer.kind).alpha == 0.9);
  CHECK(std::get<StepSchedule>(e.schedule.kind).step_size == 2.5);
  CHECK(std::get<StepSchedule>(e.schedule.kind).gamma == 0.3);
  CHECK(e.schedule.warmup_epochs == 1);
  CHECK(e.epochs == 7);
  CHECK(e.seed == 9223372036854775807U);
  CHECK(e.precision == Precision::tf32);
  CHECK(e.deterministic);
  CHECK(e.threads == 3);
  CHECK(e.max_steps == 50);
  REQUIRE(e.early_stopping);
  CHECK(e.early_stopping->monitor == "loss");
  CHECK(e.early_stopping->patience == 2);
  CHECK(e.early_stopping->min_delta == 1e-3);
  CHECK(e.early_stopping->restore_best);
  CHECK(e.checkpoint.every_epochs == 0);
  CHECK(e.checkpoint.every_steps == 10);
  CHECK(e.checkpoint.monitor == "loss");
  CHECK(e.backend == "cpu");
  CHECK(e.device == 1);
  CHECK(e.plugins == std::vector<fs::path>{folder.path() / "a.so", folder.path().parent_path() / "b"});
  CHECK(e.runs == "out");  // relative to the working directory
  REQUIRE(e.model.layers.size() == 1);
  CHECK(e.model.file == folder.path() / "m.yaml");
  CHECK(e.model.text == "layers: [linear: {units: 3}]\n");
}

TEST_CASE("a loss is a word or a map") {
  const auto loss = [](const std::string& text, const std::vector<Override>& overrides = {}) {
    return parse_experiment(kSound + "loss: " + text + "\n", "e.yaml", overrides).loss.kind;
  };
  CHECK(std::get<CrossEntropy>(loss("cross_entropy")).label_smoothing == 0);
  CHECK(std::get<CrossEntropy>(loss("cross_entropy")).class_weights.empty());
  const auto soft =
      std::get<CrossEntropy>(loss("{type: cross_entropy, label_smoothing: 0.1, class_weights: [1, 2, 0.5]}"));
  CHECK(soft.label_smoothing == 0.1);
  CHECK(soft.class_weights == std::vector<double>{1, 2, 0.5});
  CHECK(soft.class_weights_place.line == 3);
  const auto hinge = std::get<Hinge>(loss("{margin: 0.5, type: hinge, power: 2}"));  // in whichever order
  CHECK(hinge.margin == 0.5);
  CHECK(hinge.power == 2);
  CHECK(std::get<Huber>(loss("{type: huber, delta: 2.5}")).delta == 2.5);
  CHECK(std::holds_alternative<BinaryCrossEntropy>(loss("binary_cross_entropy")));
  // A word on the command line changes the type and leaves the rest.
  CHECK(std::get<CrossEntropy>(loss("{label_smoothing: 0.1}", {{"loss", "cross_entropy"}})).label_smoothing == 0.1);
  CHECK(std::holds_alternative<MeanSquaredError>(loss("cross_entropy", {{"loss", "mean_squared_error"}})));
}

TEST_CASE("every key of a schedule arrives") {
  const auto schedule = [](const std::string& text) {
    return parse_experiment(kSound + "schedule: " + text + "\n", "e.yaml").schedule;
  };
  const ScheduleConfig drops = schedule("{type: multi_step, per: step, milestones: [10, 2e1], gamma: 0.5}");
  CHECK(drops.per == SchedulePer::step);
  CHECK(std::get<MultiStepSchedule>(drops.kind).milestones == std::vector<double>{10, 20});
  CHECK(std::get<MultiStepSchedule>(drops.kind).gamma == 0.5);
  CHECK(std::get<MultiStepSchedule>(schedule("{type: multi_step, milestones: 3}").kind).milestones ==
        std::vector<double>{3});
  const ScheduleConfig cosine = schedule("{type: cosine, per: epoch, t_0: 3, t_mult: 2, warmup_epochs: 2}");
  CHECK(cosine.per == SchedulePer::epoch);
  CHECK(std::get<CosineSchedule>(cosine.kind).t_0 == 3);
  CHECK(std::get<CosineSchedule>(cosine.kind).t_mult == 2);
  const ScheduleConfig one_cycle = schedule(
      "{type: one_cycle, pct_start: 0.2, div_factor: 10, final_div_factor: 100, anneal: linear, warmup_steps: 7, "
      "warmup_start_factor: 0.5}");
  CHECK(one_cycle.per == SchedulePer::epoch_fraction);
  CHECK(one_cycle.warmup_steps == 7);
  CHECK(one_cycle.warmup_start_factor == 0.5);
  const auto cycle = std::get<OneCycleSchedule>(one_cycle.kind);
  CHECK(cycle.pct_start == 0.2);
  CHECK(cycle.div_factor == 10);
  CHECK(cycle.final_div_factor == 100);
  CHECK(cycle.anneal == Anneal::linear);
  CHECK(std::get<PolynomialSchedule>(schedule("{type: polynomial, power: 0.9}").kind).power == 0.9);
  CHECK(std::get<ExponentialSchedule>(schedule("{type: exponential, k: 0.25}").kind).k == 0.25);
  const auto plateau = std::get<ReduceOnPlateau>(
      schedule("{type: reduce_on_plateau, monitor: train_accuracy, factor: 0.5, patience: 0, threshold: 0.01, "
               "threshold_mode: absolute, cooldown: 2, min_learning_rate: 1e-5}")
          .kind);
  CHECK(plateau.monitor == "train_accuracy");
  CHECK(plateau.factor == 0.5);
  CHECK(plateau.patience == 0);
  CHECK(plateau.threshold == 0.01);
  CHECK(plateau.threshold_mode == ThresholdMode::absolute);
  CHECK(plateau.cooldown == 2);
  CHECK(plateau.min_learning_rate == 1e-5);
}

TEST_CASE("a key that several kinds have is set in the kind that is chosen, wherever it stands") {
  const Experiment e = parse_experiment(
      kSound +
          "optimizer: {momentum: 0.5, epsilon: 1e-3, type: lars}\nschedule: {min_learning_rate: 1e-3, type: cosine}\n",
      "e.yaml");
  CHECK(std::get<Lars>(e.optimizer.kind).momentum == 0.5);
  CHECK(std::get<Lars>(e.optimizer.kind).epsilon == 1e-3);
  CHECK(std::get<CosineSchedule>(e.schedule.kind).min_learning_rate == 1e-3);
}

TEST_CASE("optimizers have the defaults that their sources recommend") {
  const auto optimizer = [](const std::string& text) {
    return parse_experiment(kSound + "optimizer: " + text + "\n", "e.yaml").optimizer.kind;
  };
  CHECK(std::get<Sgd>(optimizer("sgd")).momentum == 0);
  CHECK(std::get<Adam>(optimizer("adam")).beta2 == 0.999);
  CHECK(std::get<Lion>(optimizer("lion")).beta2 == 0.99);
  CHECK(std::get<Lion>(optimizer("{type: lion, betas: [0.9, 0.999]}")).beta2 == 0.999);
  CHECK(std::get<Muon>(optimizer("muon")).momentum == 0.95);
  CHECK(std::get<Muon>(optimizer("muon")).nesterov);
  CHECK_FALSE(std::get<Muon>(optimizer("{type: muon, nesterov: false, momentum: 0}")).nesterov);
}

TEST_CASE("the same metrics can be watched everywhere") {
  const std::vector<std::string> names = tasks::monitor_names(tasks::find("classification"));
  REQUIRE(names == std::vector<std::string>{"loss", "accuracy", "top5_accuracy", "train_loss", "train_accuracy"});
  for (const std::string& name : names) {
    const Experiment e =
        parse_experiment(kSound + "early_stopping: {monitor: " + name + "}\ncheckpoint: {monitor: " + name +
                             "}\nschedule: {type: reduce_on_plateau, monitor: " + name + "}\n",
                         "e.yaml");
    CHECK(e.early_stopping->monitor == name);
    CHECK(e.checkpoint.monitor == name);
    CHECK(std::get<ReduceOnPlateau>(e.schedule.kind).monitor == name);
  }
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
  CHECK(std::holds_alternative<Sgd>(e.optimizer.kind));
  CHECK(e.optimizer.learning_rate == 0.01);
  CHECK(std::holds_alternative<ConstantSchedule>(e.schedule.kind));
  CHECK(e.epochs == 10);
  CHECK(e.backend == "auto");
  CHECK_FALSE(e.early_stopping);
  CHECK(e.runs == "runs");
}

TEST_CASE("short forms") {
  const Experiment e = parse_experiment(
      "model: {layers: [linear: {units: 2}]}\ndata: points\noptimizer: adam\nschedule: cosine\n", "e.yaml");
  CHECK(e.data.dataset == "points");
  CHECK(std::holds_alternative<Adam>(e.optimizer.kind));
  CHECK(std::holds_alternative<CosineSchedule>(e.schedule.kind));
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

TEST_CASE("a type changed by --set drops the keys of the file that it lacks, and says so") {
  const std::string sgd = "optimizer: {type: sgd, learning_rate: 0.1, momentum: 0.9, nesterov: true}\n";
  const auto with = [](const std::string& text, const std::vector<Override>& overrides) {
    return parse_experiment(kSound + text, "e.yaml", overrides);
  };
  for (const char* key : {"optimizer", "optimizer.type"}) {
    const Experiment e = with(sgd, {{key, "adam"}});
    CHECK(std::holds_alternative<Adam>(e.optimizer.kind));
    CHECK(e.optimizer.learning_rate == 0.1);
    CHECK(e.notes ==
          Texts{"note: --set optimizer.type=adam (was sgd) drops momentum, nesterov: adam has no such keys"});
  }
  CHECK(std::get<RmsProp>(with(sgd, {{"optimizer", "rmsprop"}}).optimizer.kind).momentum == 0.9);
  CHECK(with(sgd, {{"optimizer", "sgd"}}).notes.empty());
  CHECK(with(sgd, {{"optimizer", "muon"}}).notes.empty());
  CHECK(with("optimizer: {momentum: 0.9}\n", {{"optimizer", "adam"}}).notes.size() == 1);  // sgd by default
  const Experiment betas = with("optimizer: sgd\n", {{"optimizer", "adam"}, {"optimizer.betas", "[0.8, 0.9]"}});
  CHECK(std::get<Adam>(betas.optimizer.kind).beta1 == 0.8);

  const Experiment others =
      with("schedule: {type: step, step_size: 3, gamma: 0.5, warmup_epochs: 1}\nloss: {type: huber, delta: 2}\n",
           {{"schedule", "cosine"}, {"loss", "hinge"}});
  CHECK(others.schedule.warmup_epochs == 1);
  REQUIRE(others.notes.size() == 2);
  CHECK_THAT(others.notes[0], Contains("loss.type=hinge (was huber) drops delta"));
  CHECK_THAT(others.notes[1], Contains("schedule.type=cosine (was step) drops step_size, gamma"));
  const std::string csv = "model: {layers: [linear: {units: 2}]}\ndata: {dataset: csv, path: x.csv, label_column: y}\n";
  CHECK_THAT(parse_experiment(csv, "e.yaml", {{"data", "points"}}).notes.at(0), Contains("drops label_column"));
}

TEST_CASE("keys that a type lacks stay errors where the file's type stands, or --set gives them") {
  const std::string sgd = "optimizer: {type: sgd, momentum: 0.9}\n";
  CHECK_THAT(errors_of(kSound + sgd, {{"optimizer", "adam"}, {"optimizer.momentum", "0.8"}}).at(0),
             Contains("--set optimizer.momentum") && Contains("adam has no 'momentum'"));
  CHECK_THAT(errors_of(kSound + sgd, {{"optimizer.nesterov", "true"}, {"optimizer", "adam"}}).at(0),
             Contains("adam has no 'nesterov'"));
  CHECK_THAT(errors_of(kSound + "optimizer: {type: sgd, trust: 0.1}\n", {{"optimizer", "adam"}}).at(0),
             Contains("adam has no 'trust'"));  // nor has sgd: a mistake of the file
  CHECK_THAT(errors_of(kSound + sgd, {{"optimizer", "adm"}}).at(0), Contains("adam"));
  CHECK(errors_of(kSound + "optimizer: {type: adam, momentum: 0.9}\n", {{"optimizer", "adam"}}).size() == 1);
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

TEST_CASE("the text of an experiment means the same in any folder") {
  const TemporaryFolder folder;
  folder.write("models/m.yaml", "parameters: {width: 3}\nlayers: [linear: {units: $width}]\n");
  const std::string text = GENERATE(
      std::string("model: ../models/m.yaml  # ../models/m.yaml\ndata: {dataset: image_folder, path: 'a b', test_path: "
                  "\"a\"}\nplugins: [p.so, ../q]\nbackend: check:cpu,./p.so\nruns: there\n"),
      std::string("# ../models/m.yaml\r\nmodel: {file: ../models/m.yaml, parameters: {width: 5}}\r\n"
                  "data: {dataset: image_folder, path: \xC3\xBC, test_path: \xC3\xBC/t}\r\nplugins: p.so\r\n"));
  const Experiment given = load_experiment(folder.write("e/e.yaml", text));
  const Experiment copy = load_experiment(folder.write("copies/of/e.yaml", given.text));
  CHECK(resolved_yaml(copy) == resolved_yaml(given));
  CHECK(copy.text == given.text);
  CHECK_THAT(given.text, Contains("# ../models/m.yaml"));
  // The command line has no part in it.
  CHECK(load_experiment(folder / "e/e.yaml", {{"model", folder / "models/m.yaml"}, {"data.path", "c"}}).text ==
        given.text);
}

TEST_CASE("paths on the command line are the working directory's") {
  const Experiment e = parse_experiment(kSound, "there/e.yaml", {{"data.path", "here"}});
  CHECK(e.data.path == fs::current_path() / "here");
}
