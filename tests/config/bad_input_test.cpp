// Each class of bad input in an experiment, with the exact text of its message.
#include <gpunn/error.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace config_test;

TEST_CASE("unknown keys suggest what was meant") {
  CHECK(errors_of(kSound + "optimizer: {learning_rat: 0.1}\n") ==
        Texts{"e.yaml:3:13: unknown key 'learning_rat' in optimizer; did you mean 'learning_rate'?"});
  CHECK(errors_of(kSound + "trainig: {epochs: 1}\n") ==
        Texts{"e.yaml:3:1: unknown key 'trainig' in the experiment; did you mean 'training'?"});
  CHECK(errors_of(kSound + "epochs: 3\n") ==
        Texts{"e.yaml:3:1: unknown key 'epochs' in the experiment; did you mean 'training.epochs'?"});
  CHECK(errors_of(kSound + "checkpoint: {xyzzy: 3}\n") ==
        Texts{"e.yaml:3:14: unknown key 'xyzzy' in checkpoint; known: every_epochs, every_steps, monitor"});
}

TEST_CASE("duplicate keys") {
  CHECK(errors_of(kSound + "training: {seed: 1, seed: 2}\n") ==
        Texts{"e.yaml:3:21: duplicate key 'seed'; it is already given in line 3"});
  CHECK(errors_of(kSound + "data: mnist\n") ==
        Texts{"e.yaml:3:1: duplicate key 'data'; it is already given in line 2"});
}

TEST_CASE("wrongly typed values") {
  const auto error = [](const std::string& line) { return errors_of(kSound + line + "\n"); };
  CHECK(error("training: {epochs: ten}") ==
        Texts{"e.yaml:3:20: training.epochs: expected an integer of at least 1 and at most 1000000, found 'ten'"});
  CHECK(error("training: {epochs: 1.5}") ==
        Texts{"e.yaml:3:20: training.epochs: expected an integer of at least 1 and at most 1000000, found '1.5'"});
  CHECK(error("training: {epochs: \"5\"}") ==
        Texts{"e.yaml:3:20: training.epochs: expected an integer of at least 1 and at most 1000000, found the text "
              "\"5\""});
  CHECK(error("training: {deterministic: yes}") ==
        Texts{"e.yaml:3:27: training.deterministic: expected true or false, found 'yes'"});
  CHECK(error("optimizer: {learning_rate: fast}") ==
        Texts{"e.yaml:3:28: optimizer.learning_rate: expected a number above 0 and at most 1000, found 'fast'"});
  CHECK(error("optimizer: {learning_rate: }") ==
        Texts{"e.yaml:3:28: optimizer.learning_rate: expected a number above 0 and at most 1000, found nothing"});
  CHECK(error("optimizer: {learning_rate: 2e-5}").empty());
  CHECK(error("optimizer: {type: adam, betas: 0.9}") ==
        Texts{"e.yaml:3:32: optimizer.betas: expected a list of 2 numbers of at least 0 and below 1, found '0.9'"});
  CHECK(error("name: [a]") == Texts{"e.yaml:3:7: name: expected a text, found a list"});
  CHECK(error("plugins: {a: b}") == Texts{"e.yaml:3:10: plugins: expected a list of paths, found a map"});
  CHECK(error("training: 5") ==
        Texts{"e.yaml:3:11: training: expected a map of keys, which 'gpunn help keys training' lists, found '5'"});
}

TEST_CASE("what several ranks can't do together") {
  const auto error = [](const std::string& line) { return errors_of(kSound + line + "\n"); };
  CHECK(error("training: {wire: bf16, micro_batches: 4}") ==
        Texts{"e.yaml:3:12: training.wire bf16 rounds by rank, and training.micro_batches promises the same bits on "
              "any number of ranks; leave one of them out"});
  CHECK(
      error("training: {global_batch_norm: true, micro_batches: 4}") ==
      Texts{"e.yaml:3:12: training.global_batch_norm takes the batch at once, and training.micro_batches cuts it into "
            "parts; leave one of them out"});
  CHECK(error("training: {shard: optimizer}\noptimizer: lars") ==
        Texts{"e.yaml:3:12: training.shard optimizer is for optimizers that update each number by itself: sgd, adam, "
              "adamw, rmsprop, adagrad, lion"});
  CHECK(error("training: {shard: optimizer, precision: f16}") ==
        Texts{"e.yaml:3:12: training.shard optimizer does not go with training.precision f16, whose scale all ranks "
              "must find by all gradients; take bf16"});
  CHECK(error("training: {shard: optimizer, wire: bf16, global_batch_norm: true, bucket_kib: 64}").empty());
}

TEST_CASE("training.recompute names layers or blocks of the model") {
  const std::string blocks =
      "model:\n"
      "  blocks: {pair: {layers: [linear: {name: dense, units: 4}, relu]}}\n"
      "  layers: [pair: {name: stage, repeat: 2}, linear: {name: output, units: 2}]\n"
      "data: points\n";
  for (const char* fine : {"stage", "stage.1", "'*.dense'", "[output, 'st*']", "'*'"}) {
    CHECK(parse_experiment(blocks + "training: {recompute: " + fine + "}\n", "e.yaml").recompute.size() >= 1);
  }
  CHECK(errors_of(blocks + "training:\n  seed: 2\n  recompute: [stag, 'x*', stage]\n") ==
        Texts{"e.yaml:7:3: training.recompute: 'stag' matches no layer or block of the model; did you mean 'stage'?",
              "e.yaml:7:3: training.recompute: 'x*' matches no layer or block of the model; there are stage, stage.0, "
              "stage.0.dense, stage.0.relu1, stage.1, stage.1.dense, stage.1.relu1, output"});
}

TEST_CASE("numbers out of range, NaN and infinity") {
  const std::string value = GENERATE(as<std::string>(), "0", "-1", ".nan", "nan", ".inf", "-.inf", "inf", "1e999",
                                     "1001", "0x10", "1_000", "++1", "+-1", "1.0.0");
  CHECK(
      errors_of(kSound + "optimizer: {learning_rate: " + value + "}\n") ==
      Texts{"e.yaml:3:28: optimizer.learning_rate: expected a number above 0 and at most 1000, found '" + value + "'"});
}

TEST_CASE("sizes of zero or less") {
  const std::string value = GENERATE(as<std::string>(), "0", "-4");
  CHECK(errors_of("model: {layers: [relu]}\ndata: {dataset: points, batch_size: " + value + "}\n") ==
        Texts{"e.yaml:2:37: data.batch_size: expected an integer of at least 1 and at most 1048576, found '" + value +
              "'"});
}

TEST_CASE("momentum, betas and decay stay in their ranges") {
  CHECK(errors_of(kSound + "optimizer: {momentum: 1}\n") ==
        Texts{"e.yaml:3:23: optimizer.momentum: expected a number of at least 0 and below 1, found '1'"});
  CHECK(errors_of(kSound + "optimizer: {type: adam, betas: [0.9, 1]}\n").size() == 1);
  CHECK(errors_of(kSound + "optimizer: {weight_decay: -1}\n").size() == 1);
  CHECK(errors_of(kSound + "training: {epochs: 0}\n").size() == 1);
  CHECK(errors_of(kSound + "training: {seed: 9223372036854775808}\n").size() == 1);
}

TEST_CASE("a choice suggests what was meant") {
  CHECK(errors_of(kSound + "optimizer: {type: adamm}\n") ==
        Texts{"e.yaml:3:19: optimizer.type: expected one of " + choices_of("optimizer.type") +
              ", found 'adamm'; did you mean 'adam'?"});
  CHECK(errors_of("model: {layers: [relu]}\ndata: mnits\n") ==
        Texts{"e.yaml:2:7: data.dataset: expected one of " + choices_of("data.dataset") +
              ", found 'mnits'; did you mean 'mnist'?"});
}

TEST_CASE("keys of a loss") {
  const auto errors = [](const std::string& loss) { return errors_of(kSound + "loss: " + loss + "\n"); };
  CHECK(errors("cross_entropy").empty());
  CHECK(errors("{label_smoothing: 0.1, class_weights: [1, 0.5]}").empty());
  CHECK(errors("cros_entropy") == Texts{"e.yaml:3:7: loss.type: expected one of " + choices_of("loss.type") +
                                        ", found 'cros_entropy'; did you mean 'cross_entropy'?"});
  CHECK(errors("{type: hinge, power: 3}") ==
        Texts{"e.yaml:3:28: loss.power: expected an integer of at least 1 and at most 2, found '3'"});
  CHECK(errors("{type: huber, delta: 0}") ==
        Texts{"e.yaml:3:28: loss.delta: expected a number above 0 and at most 1000, found '0'"});
  CHECK(errors("hinge\naugmentation: {mixup: 0.2}") ==
        Texts{"e.yaml:4:16: augmentation.mixup mixes targets, and the loss hinge takes one class a row; use another "
              "loss"});
  CHECK(errors("{type: huber, margin: 2}") == Texts{"e.yaml:3:21: loss huber has no 'margin'; it has delta"});
  CHECK(
      errors_of("model: {layers: [linear: {units: 1}, sigmoid]}\ndata: points\nloss: binary_cross_entropy\n").empty());
  CHECK(errors("{type: cross_entropy, label_smoothing: 1.5}") ==
        Texts{"e.yaml:3:46: loss.label_smoothing: expected a number of at least 0 and at most 1, found '1.5'"});
  CHECK(errors("{label_smoothing: -0.1}").size() == 1);
  CHECK(errors("{class_weights: [1, -1]}") ==
        Texts{"e.yaml:3:27: loss.class_weights: expected a list of numbers of at least 0, found '-1'"});
  CHECK(errors("{class_weights: [0, 0]}") ==
        Texts{"e.yaml:3:8: loss.class_weights: expected a number above 0 among them"});
  CHECK(errors("{smoothing: 0.1}") ==
        Texts{"e.yaml:3:8: unknown key 'smoothing' in loss; did you mean 'label_smoothing'?"});
  CHECK(errors("{xyzzy: 0.1}") == Texts{"e.yaml:3:8: unknown key 'xyzzy' in loss; 'gpunn help keys loss' lists them"});
  CHECK(errors("{type: mean_squared_error, label_smoothing: 0.1}") ==
        Texts{"e.yaml:3:34: loss mean_squared_error has no 'label_smoothing'; that is for cross_entropy, sum"});
  CHECK(errors("[cross_entropy]") ==
        Texts{"e.yaml:3:7: loss: expected a map of keys, which 'gpunn help keys loss' lists, found a list"});
}

TEST_CASE("missing keys") {
  CHECK(errors_of("name: x\n") == Texts{"e.yaml: missing key 'model': the path of a model file, or a model",
                                        "e.yaml: missing key 'data.dataset': one of " + choices_of("data.dataset")});
  CHECK(errors_of("model: {layers: [relu]}\ndata: {batch_size: 3}\n") ==
        Texts{"e.yaml:2:1: missing key 'data.dataset': one of " + choices_of("data.dataset")});
  CHECK(errors_of("- a\n") == Texts{"e.yaml:1:1: expected an experiment: a map with 'model' and 'data', found a list"});
  CHECK(
      errors_of("name: x\nlayers: [flatten]\n") ==
      Texts{"e.yaml:2:9: these layers are a model by itself; an experiment names its file, as 'model: e.yaml', and has "
            "a section 'data'"});
}

TEST_CASE("keys of another optimizer or schedule") {
  CHECK(errors_of(kSound + "optimizer: {type: adam, momentum: 0.9}\n") ==
        Texts{"e.yaml:3:25: optimizer adam has no 'momentum'; it has learning_rate, weight_decay, betas, epsilon, l1, "
              "clip_value, "
              "clip_norm, groups"});
  CHECK(errors_of(kSound + "optimizer: {betas: [0.9, 0.99]}\n") ==
        Texts{"e.yaml:3:13: optimizer sgd has no 'betas'; it has learning_rate, momentum, nesterov, weight_decay, l1, "
              "clip_value, clip_norm, groups"});
  CHECK(errors_of(kSound + "schedule: {type: cosine, gamma: 0.5}\n") ==
        Texts{"e.yaml:3:26: schedule cosine has no 'gamma'; it has per, length, warmup_epochs, warmup_steps, "
              "warmup_start_factor, t_0, t_mult, min_learning_rate"});
  CHECK(errors_of(kSound + "schedule: {type: reduce_on_plateau, per: step}\n").size() == 1);
  CHECK(errors_of(kSound + "schedule: {type: step, step_epochs: 2}\n") ==
        Texts{"e.yaml:3:12: schedule step needs 'step_size', the epochs between two drops: a number above 0",
              "e.yaml:3:24: unknown key 'step_epochs' in schedule; it is called 'step_size' now"});
  // No complaint about keys of a type that was mistyped.
  CHECK(errors_of(kSound + "schedule: {type: cosin, min_learning_rate: 0}\n").size() == 1);
}

TEST_CASE("parameter groups and patterns") {
  const auto errors = [](const std::string& groups) {
    return errors_of(kSound + "optimizer: {groups: " + groups + "}\n");
  };
  CHECK(errors("[{match: 'a*', learning_rate_factor: 2, weight_decay: false}]").empty());
  CHECK(errors("a") == Texts{"e.yaml:3:21: optimizer.groups: expected a list of groups, found 'a'"});
  CHECK(errors("[a]") == Texts{"e.yaml:3:22: optimizer.groups: expected a group, {match: PATTERN, ...}, found 'a'"});
  CHECK(errors("[{weight_decay: 1}]") ==
        Texts{"e.yaml:3:22: optimizer.groups: missing key 'match': a pattern of the parameters' names"});
  CHECK(errors("[{match: a, weight_decy: 1}]") ==
        Texts{"e.yaml:3:33: unknown key 'weight_decy' in a group of optimizer.groups; did you mean 'weight_decay'?"});
  CHECK(errors("[{match: a, learning_rate_factor: 0}]") ==
        Texts{"e.yaml:3:55: optimizer.groups: expected a number above 0 and at most 1000, found '0'"});
  CHECK(errors("[{match: a, weight_decay: yes}]") ==
        Texts{"e.yaml:3:47: optimizer.groups: expected true, false or a number of at least 0 and at most 1000, found "
              "'yes'"});
  CHECK(errors("[{match: []}]").size() == 1);
  CHECK(errors_of(kSound + "training: {freeze: [[a]]}\n") ==
        Texts{"e.yaml:3:21: training.freeze: expected a list of texts, found a list"});
}

TEST_CASE("settings that don't go together") {
  CHECK(errors_of(kSound + "optimizer: {nesterov: true}\n") ==
        Texts{"e.yaml:3:13: optimizer.nesterov needs optimizer.momentum above 0"});
  CHECK(errors_of("model: {layers: [relu]}\ndata: {dataset: mnist, mean: [0.1]}\n") ==
        Texts{"e.yaml:2:24: data.mean and data.stddev go together, a number a channel each; found 1 and 0"});
  CHECK(errors_of("model: {layers: [relu]}\ndata: {dataset: digits, train_limit: 100}\n") ==
        Texts{"e.yaml:2:25: data.train_limit (100) is less than one batch (data.batch_size: 128)"});
  for (const std::string last : {"softmax", "log_softmax"}) {
    CHECK(
        errors_of("model: {layers: [" + last + "]}\ndata: digits\nloss: binary_cross_entropy\n") ==
        Texts{"e.yaml:1:18: the loss binary_cross_entropy judges each output by itself, with a sigmoid: leave out the "
              "model's last layer"});
  }
}

TEST_CASE("a schedule whose rate grows without end, or whose periods vanish") {
  const auto errors = [](const std::string& schedule, const std::string& more = "training: {epochs: 10000}\n") {
    return errors_of(kSound + "schedule: {" + schedule + "}\n" + more);
  };
  CHECK(errors("type: step, step_size: 1, gamma: 2")
            .at(0)
            .starts_with("e.yaml:3:38: schedule.gamma: the learning rate becomes 1"));
  CHECK(errors("type: step, per: epoch, step_size: 1, gamma: 2").size() == 1);
  CHECK(
      errors("type: multi_step, milestones: [1, 2, 3], gamma: 1000").at(0).starts_with("e.yaml:3:53: schedule.gamma"));
  CHECK(
      errors("type: one_cycle, final_div_factor: 1e-300").at(0).starts_with("e.yaml:3:29: schedule.final_div_factor"));
  CHECK(errors("type: one_cycle, div_factor: 1e-300").at(0).starts_with("e.yaml:3:29: schedule.div_factor"));
  for (const std::string least : {"t_0: 1e-11", "t_0: 5e-324, t_mult: 2"}) {
    CHECK(errors("type: cosine, " + least)
              .at(0)
              .starts_with("e.yaml:3:26: schedule.t_0: expected at least 1e-06 epochs"));
  }
  CHECK(errors("type: step, step_size: 1e-11").at(0).starts_with("e.yaml:3:24: schedule.step_size: expected at least"));
  CHECK(errors("type: step, step_size: 1, gamma: 2", "training: {epochs: 10}\n").empty());
  CHECK(errors("type: cosine, t_0: 1e-6").empty());
}

TEST_CASE("a schedule that can't be") {
  const auto errors = [](const std::string& schedule) { return errors_of(kSound + "schedule: {" + schedule + "}\n"); };
  CHECK(errors("type: step") ==
        Texts{"e.yaml:3:12: schedule step needs 'step_size', the epochs between two drops: a number above 0"});
  CHECK(errors("type: step, per: step, step_size: 0") ==
        Texts{"e.yaml:3:35: schedule step needs 'step_size', the steps between two drops: a number above 0"});
  CHECK(errors("type: multi_step") == Texts{"e.yaml:3:12: schedule multi_step needs 'milestones', the epochs of the "
                                            "training after which the rate drops: [30, 60]"});
  CHECK(errors("type: multi_step, milestones: [3, 2]") ==
        Texts{"e.yaml:3:30: schedule.milestones: expected each to be larger than the one before"});
  CHECK(errors("type: multi_step, milestones: [2, 2]").size() == 1);
  CHECK(errors("type: multi_step, milestones: [0, 2]").size() == 1);
  CHECK(errors("warmup_epochs: 11") ==
        Texts{"e.yaml:3:12: schedule.warmup_epochs (11) must be at most training.epochs (10)"});
  CHECK(errors("warmup_epochs: 1, warmup_steps: 10") ==
        Texts{"e.yaml:3:30: schedule.warmup_epochs and schedule.warmup_steps both say how long: keep one"});
  CHECK(errors("per: epoch, warmup_steps: 10") ==
        Texts{"e.yaml:3:24: schedule.warmup_steps can't be followed where the rate changes with each epoch "
              "(schedule.per: epoch); give warmup_epochs, or leave out 'per'"});
  CHECK(errors("type: cosine, min_learning_rate: 1") ==
        Texts{"e.yaml:3:26: schedule.min_learning_rate (1) must be at most optimizer.learning_rate (0.01)"});
  CHECK(errors("type: cosine, per: step, t_0: 2.5") ==
        Texts{"e.yaml:3:37: schedule.t_0: expected a whole number of steps (schedule.per: step), found 2.5"});
  CHECK(errors("type: cosine, t_0: 2.5").empty());
  CHECK(
      errors("type: cosine, per: epoch, warmup_epochs: 0.5") ==
      Texts{"e.yaml:3:38: schedule.warmup_epochs: expected a whole number of epochs (schedule.per: epoch), found 0.5"});
  CHECK(errors("type: reduce_on_plateau, factor: 1").size() == 1);
  CHECK(errors("type: reduce_on_plateau, monitor: acuracy") ==
        Texts{"e.yaml:3:46: schedule.monitor: expected one of " + choices_of("schedule.monitor") +
              ", found 'acuracy'; did you mean 'accuracy'?"});
}

TEST_CASE("weights can be brought back only by the metric that they were kept by") {
  CHECK(errors_of(kSound + "early_stopping: {monitor: loss, restore_best: true}\n") ==
        Texts{"e.yaml:3:33: early_stopping.restore_best ends with the weights of best.h5, and that goes by "
              "checkpoint.monitor (accuracy), not by early_stopping.monitor (loss); give both the same"});
  CHECK(errors_of(kSound + "early_stopping: {restore_best: true}\n").empty());
}

TEST_CASE("a name that can't be a folder") {
  CHECK(errors_of(kSound + "name: ../up\n") ==
        Texts{"e.yaml:3:1: name: expected letters, digits, '_', '-' and '.', found '../up'"});
  CHECK(errors_of(kSound + "name: .hidden\n").size() == 1);
}

TEST_CASE("all errors come at once, in the order of the lines") {
  CHECK(errors_of(kSound +
                  "optimizer: {type: adam, momentum: 0.9, learning_rat: 1}\ntraining: {epochs: 0}\nmodle: x\n") ==
        Texts{"e.yaml:3:25: optimizer adam has no 'momentum'; it has learning_rate, weight_decay, betas, epsilon, l1, "
              "clip_value, clip_norm, groups",
              "e.yaml:3:40: unknown key 'learning_rat' in optimizer; did you mean 'learning_rate'?",
              "e.yaml:4:20: training.epochs: expected an integer of at least 1 and at most 1000000, found '0'",
              "e.yaml:5:1: unknown key 'modle' in the experiment; did you mean 'model'?"});
}

TEST_CASE("bad overrides say which") {
  const auto error = [](const std::string& key, const std::string& value) { return errors_of(kSound, {{key, value}}); };
  CHECK(error("optimizer.learning_rat", "1") ==
        Texts{"--set optimizer.learning_rat: unknown key 'learning_rat' in optimizer; did you mean 'learning_rate'?"});
  CHECK(error("training.epochs", "zero") ==
        Texts{"--set training.epochs: expected an integer of at least 1 and at most 1000000, found "
              "'zero'"});
  CHECK(error("optimizer.momentum", "") ==
        Texts{"--set optimizer.momentum: expected a number of at least 0 and below 1, found nothing"});
  CHECK(error("a..b", "1") == Texts{"--set a..b: expected a key such as optimizer.learning_rate"});
  CHECK(error("", "1") == Texts{"--set : expected a key such as optimizer.learning_rate"});
  CHECK(error("data.batch_size.x", "1").size() == 1);
  CHECK(error("data.dataset.x", "1") == Texts{"--set data.dataset.x: 'data.dataset' is a value: nothing is below it"});
  CHECK(error("name", "[a").size() == 1);
  CHECK(error("model.parameters.width", "3").front() ==
        "--set model.parameters.width: unknown parameter 'width' of the model 'e'; it has no parameters");
  CHECK(error("optimizer.momentum.deep.er.and.still.deeper.than.that", "1").size() == 1);
}

TEST_CASE("files that can't be read") {
  const TemporaryFolder folder;
  folder.write("lenet.yaml", kSound);
  try {
    load_experiment(folder.path() / "lenett.yaml");
    FAIL("no error");
  } catch (const ConfigError& error) {
    CHECK(error.code() == ExitCode::usage);
    CHECK_THAT(error.what(), Contains("can't read " + (folder.path() / "lenett.yaml").string() + ": No such file") &&
                                 Contains("; did you mean 'lenet.yaml'?"));
  }
  const fs::path file = folder.write("e.yaml", "model: no.yaml\ndata: points\n");
  CHECK_THROWS_WITH(load_experiment(file),
                    Contains("e.yaml:1:8: model: can't read ") && Contains("no.yaml: No such file"));
  CHECK_THROWS_WITH(load_experiment(folder.path()), Contains("it is a folder"));
  CHECK_THROWS_WITH(load_experiment(folder.write("big.yaml", std::string(2000000, '#'))), Contains("larger than"));
}

TEST_CASE("a mistake in a model's file is located there, with those of the experiment") {
  const TemporaryFolder folder;
  folder.write("m.yaml", "layers:\n  - lineer: {units: 2}\n");
  const fs::path file = folder.write("e.yaml", "model: m.yaml\ndata: points\ntraining: {epoch: 1}\n");
  CHECK_THROWS_WITH(load_experiment(file), Contains("m.yaml:2:5: unknown layer 'lineer'; did you mean 'linear'?") &&
                                               Contains("e.yaml:3:12: unknown key 'epoch' in training"));
}
