// Steps, rows and epochs are counted: a run that ends inside an epoch, sessions whose epochs have other lengths, and a
// schedule that a resumed run keeps or stretches.
#include <gpunn/network.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "common/files.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"
#include "session/schedule.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using training::Schedule;

namespace {

// A batch norm whose statistics have an average, dropout and rows in an order of their own; ten steps an epoch.
Experiment counted_run(const std::filesystem::path& runs, const Overrides& more = {}) {
  return parse_experiment(
      "name: normed\n"
      "model: {layers: [flatten, linear: {name: hidden, units: 12, bias: false}, batch_norm: {name: bn}, relu, "
      "dropout: "
      "{p: 0.2}, linear: {name: output, units: 10}]}\n"
      "data: {dataset: digits, synthetic_train: 160, synthetic_test: 60, batch_size: 16}\n"
      "optimizer: {type: adam, learning_rate: 0.01}\n"
      "training: {epochs: 4, ema: 0.9, log_every_steps: 1}\n"
      "backend: cpu\nruns: " +
          runs.string() + "\n",
      "normed.yaml", more);
}

class HeardMessages final : public TrainingListener {
 public:
  void on_message(const std::string& text) override { all += text + "\n"; }
  std::string all;
};

// The epochs of a table of records without the columns of times, which no two runs share.
std::vector<std::string> epochs_in(const std::filesystem::path& run) {
  std::ifstream in(run / "metrics.csv");
  std::vector<std::string> rows;
  for (std::string line; std::getline(in, line);) {
    for (int i = 0; i < 2; ++i) {  // samples_per_second and best, then train_seconds
      const std::size_t best = line.rfind(','), rate = line.rfind(',', best - 1);
      line.erase(rate, best - rate);
    }
    rows.push_back(line);
  }
  return rows;
}

std::vector<int64_t> recorded_steps(const std::filesystem::path& run) {
  std::ifstream in(run / "metrics.jsonl");
  std::vector<int64_t> steps;
  for (std::string line; std::getline(in, line);) {
    steps.push_back(std::stoll(line.substr(line.find("\"global_step\":") + 14)));
  }
  return steps;
}

Dataset sine_rows(int64_t rows) {
  Dataset set;
  set.train.samples = {DType::f32, {rows, 3}};
  set.train.values.resize(set.train.samples.bytes());
  std::vector<int32_t> classes(static_cast<std::size_t>(rows));
  auto* const values = reinterpret_cast<float*>(set.train.values.data());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < 3; ++k) values[i * 3 + k] = static_cast<float>(std::sin(static_cast<double>(i * 3 + k)));
    classes[static_cast<std::size_t>(i)] = static_cast<int32_t>(i % 2);
  }
  set.name = kArrays;
  set.fields.target() = fields::target_field("class", {"0", "1"});
  set.train.fields[kLabelField] = fields::class_values(classes);
  set.unwatched = true;
  return set;
}

Experiment small_net(const std::string& batch, const std::string& more = "") {
  return parse_experiment(
      "model: {layers: [linear: {name: hidden, units: 4}, batch_norm: {name: bn}, relu, linear: {name: output, units: "
      "2}]}\ntask: classification\ndata: {dataset: arrays, drop_last: false, batch_size: " +
          batch + "}\noptimizer: {type: adam, learning_rate: 0.1}\nbackend: cpu\n" + more,
      "net.yaml");
}

ModelInfo three_numbers() {
  ModelInfo info;
  info.fields.input().type = {DType::f32, {3}};
  return info;
}

}  // namespace

TEST_CASE("max_steps inside an epoch, then a resume, is the straight run") {
  const TemporaryFolder folder;
  const Overrides more = GENERATE(
      Overrides{}, Overrides{{"data.residency", "stream"}}, Overrides{{"training.micro_batches", "3"}},
      Overrides{{"data.batch_size", "8"}, {"training.accumulate", "2"}},
      Overrides{{"schedule", "{type: cosine, length: 4, warmup_epochs: 1}"}},
      // Nothing is an improvement: an epoch that was counted twice would halve the rate once more, and end the run.
      Overrides{{"schedule",
                 "{type: reduce_on_plateau, monitor: train_loss, factor: 0.5, patience: 0, threshold: 900, "
                 "threshold_mode: absolute}"},
                {"early_stopping", "{monitor: train_loss, patience: 3, min_delta: 900}"}});
  const RunResult straight = train(counted_run(folder.path(), more));
  for (const char* stop : {"7", "13", "20", "29"}) {
    CAPTURE(stop, more.empty() ? "" : more[0].key);
    const RunResult part = train(counted_run(folder.path(), with(more, {{"training.max_steps", stop}})));
    CHECK(part.epochs.back().global_step == std::stoll(stop));
    CHECK(path_exists(part.run / "best.h5"));  // whatever there is
    const auto counters = storage::load_checkpoint(part.run / "last.h5").counters;
    CHECK(counters.at("step") == std::stoll(stop));
    CHECK(counters.at("epoch") == std::stoll(stop) / 10);
    CHECK(counters.at("sampler_position") == std::stoll(stop) % 10);
    CHECK(counters.at("rows") == std::stoll(stop) * 16);
    const std::vector<std::string> before = epochs_in(part.run);
    CHECK(resume(part.run, {}).epochs.empty());
    CHECK(epochs_in(part.run) == before);

    resume(part.run, {{"training.max_steps", "0"}});
    CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
    CHECK(same_state(straight.run / "best.h5", part.run / "best.h5"));
    CHECK(epochs_in(part.run) == epochs_in(straight.run));
    CHECK(recorded_steps(part.run) == recorded_steps(straight.run));
  }
}

TEST_CASE("training again with other batches and other rows counts on") {
  Network network(small_net("4", "training: {epochs: 2}"), three_numbers());
  network.train(sine_rows(20));
  CHECK(network.steps() == 10);
  CHECK(network.epochs() == 2);

  // Three epochs of 2 steps.
  network.set(small_net("8", "training: {epochs: 3}"), three_numbers());
  RunResult result = network.train(sine_rows(16));
  CHECK(network.steps() == 16);
  CHECK(network.epochs() == 5);
  std::vector<int64_t> numbers, steps;
  for (const EpochReport& epoch : result.epochs) {
    numbers.push_back(epoch.epoch);
    steps.push_back(epoch.global_step);
  }
  CHECK(numbers == std::vector<int64_t>{3, 4, 5});
  CHECK(steps == std::vector<int64_t>{12, 14, 16});

  // max_steps are those of a call, and end it inside its second epoch of 3 steps.
  network.set(small_net("5", "training: {epochs: 3, max_steps: 4}"), three_numbers());
  result = network.train(sine_rows(15));
  CHECK(network.steps() == 20);
  CHECK(result.epochs.back().epoch == 7);

  // The next call begins the eighth.
  network.set(small_net("15", "training: {epochs: 1}"), three_numbers());
  result = network.train(sine_rows(15));
  CHECK(network.steps() == 21);
  CHECK(result.epochs.back().epoch == 8);
  CHECK(result.epochs.back().global_step == 21);
}

TEST_CASE("a schedule continues from the counted steps and epochs") {
  const auto scheduled = [](const std::string& schedule) {
    return small_net("4", "schedule: " + schedule + "\ntraining: {epochs: 8}");
  };
  // Ten steps of two epochs are done. An epoch has 2 steps from here on: step 12 is at the end of epoch 3.
  const Dataset rows = sine_rows(8);
  const auto rates = [&](const std::string& schedule) {
    const Experiment experiment = scheduled(schedule);
    return Schedule(experiment, training::training_length(experiment, rows, {.step = 10, .epoch = 2})).rates();
  };
  const std::vector<float> by_epoch = rates("{type: multi_step, milestones: [3, 4.5], gamma: 0.5}");
  CHECK(by_epoch.size() == 22);  // 10, and 6 epochs of 2
  CHECK(by_epoch[11] == 0.1F);
  CHECK(by_epoch[12] == 0.05F);
  CHECK(by_epoch[14] == 0.05F);
  CHECK(by_epoch[15] == 0.025F);
  const std::vector<float> by_step = rates("{type: multi_step, per: step, milestones: [12, 15], gamma: 0.5}");
  CHECK(by_step == by_epoch);
  const std::vector<float> cosine = rates("cosine");
  for (std::size_t step = 10; step < 22; ++step) {
    const double epochs = 2 + (static_cast<double>(step) - 10) / 2;
    CHECK(cosine[step] == Approx(0.05 * (1 + std::cos(M_PI * epochs / 8))));
  }
  // A warm-up of 12 steps has two to go, one of 5 is over.
  const std::vector<float> warm = rates("{type: constant, warmup_steps: 12, warmup_start_factor: 0.5}");
  CHECK(warm[10] == Approx(0.1 * (0.5 + 0.5 * 10 / 12)));
  CHECK(warm[12] == 0.1F);
  CHECK(rates("{type: constant, warmup_steps: 5}")[10] == 0.1F);
}

TEST_CASE("a schedule with a length of its own keeps its last rate") {
  const auto rates = [](const std::string& schedule) {
    const Experiment experiment = small_net("4", "schedule: " + schedule + "\ntraining: {epochs: 6}");
    return Schedule(experiment, {.steps_per_epoch = 4, .steps = 24}).rates();
  };
  // The shorter training that the schedule was made for.
  const Experiment shorter = small_net("4", "schedule: {type: cosine, warmup_epochs: 1}\ntraining: {epochs: 3}");
  const std::vector<float> expected = Schedule(shorter, {.steps_per_epoch = 4, .steps = 12}).rates();
  for (const char* schedule :
       {"{type: cosine, warmup_epochs: 1, length: 3}", "{type: cosine, per: step, warmup_steps: 4, length: 12}"}) {
    const std::vector<float> found = rates(schedule);
    REQUIRE(found.size() == 24);
    for (std::size_t i = 0; i < 12; ++i) CHECK(found[i] == expected[i]);
    for (std::size_t i = 12; i < 24; ++i) CHECK(found[i] == 0);
  }
  CHECK(rates("{type: polynomial, min_learning_rate: 0.01, length: 2.5}")[10] == 0.01F);
  CHECK(rates("{type: step, step_size: 1, gamma: 0.5, length: 2}")[23] == 0.025F);
  CHECK_THROWS_WITH(rates("{type: cosine, length: 1, warmup_epochs: 2}"),
                    Contains("schedule.length (1) must be at least schedule.warmup_epochs (2)"));
  CHECK_THROWS_WITH(rates("{type: cosine, per: epoch, length: 1.5}"), Contains("schedule.length: expected a whole"));
  CHECK_THROWS_WITH(rates("{type: reduce_on_plateau, length: 2}"), Contains("has no 'length'"));
}

TEST_CASE("a relative threshold of reduce_on_plateau is a share of the size of the best value") {
  struct Case {
    const char* monitor;
    double best, value;
    bool improves;
  };
  for (const Case& one : {Case{"r2", -2.0, -1.9, false},
                          {"r2", -2.0, -1.7, true},
                          {"r2", -2.0, -2.1, false},
                          {"r2", 0.5, 0.54, false},
                          {"r2", 0.5, 0.56, true},
                          {"r2", -0.05, 0.1, true},
                          {"loss", -2.0, -2.1, false},
                          {"loss", -2.0, -2.3, true},
                          {"loss", -2.0, -1.9, false},
                          {"loss", 2.0, 1.9, false},
                          {"loss", 2.0, 1.7, true}}) {
    CAPTURE(one.monitor, one.best, one.value);
    const ReduceOnPlateau config{.monitor = one.monitor, .factor = 0.5, .patience = 0, .threshold = 0.1};
    training::Plateau plateau;
    CHECK_FALSE(plateau.observe(config, 1, one.best));
    CHECK(plateau.observe(config, 1, one.value) != one.improves);
  }
}

TEST_CASE("a resumed run says that it stretches the schedule, and keeps it where that is wanted") {
  const TemporaryFolder folder;
  const std::string schedule =
      GENERATE("{type: cosine, min_learning_rate: 0.001}", "{type: polynomial, min_learning_rate: 0.001}",
               "{type: one_cycle, min_learning_rate: 0.001}", "{type: cosine, per: step, min_learning_rate: 0.001}");
  CAPTURE(schedule);
  const Overrides more{{"schedule", schedule}, {"training.epochs", "2"}, {"training.max_steps", "17"}};
  const RunResult run = train(counted_run(folder.path(), more));
  const Overrides longer{{"training.epochs", "4"}, {"training.max_steps", "0"}};
  const std::filesystem::path copy = folder.path() / "copy";
  std::filesystem::copy(run.run, copy);

  HeardMessages messages;
  const RunResult stretched = resume(run.run, longer, {.listener = &messages});
  CHECK_THAT(messages.all, Contains("was made for 17 steps and now extends over 40: the next learning rate is 0.00"));
  CHECK_THAT(messages.all, Contains("by the old schedule it would be 0.001"));
  CHECK_THAT(messages.all, Contains("resume with --keep-schedule, which sets schedule.length to "));
  CHECK(stretched.epochs[0].learning_rate > 0.0015);

  messages.all.clear();
  const RunResult kept = resume(copy, longer, {.listener = &messages, .keep_schedule = true});
  CHECK_THAT(messages.all, !Contains("was made for"));
  for (const EpochReport& epoch : kept.epochs) CHECK(epoch.learning_rate == Approx(0.001));
  // It is a key of the run from now on.
  messages.all.clear();
  CHECK(resume(copy, {{"training.epochs", "5"}}, {.listener = &messages}).epochs.back().learning_rate == Approx(0.001));
  CHECK_THAT(messages.all, !Contains("was made for"));
}

TEST_CASE("a schedule that does not depend on the length of the training is resumed without a word") {
  const TemporaryFolder folder;
  const std::string schedule =
      GENERATE("constant", "{type: step, step_size: 1}", "{type: exponential, k: 0.1}", "{type: cosine, t_0: 1}",
               "{type: reduce_on_plateau, patience: 0}", "{type: reduce_on_plateau, patience: 0, threshold: 10}");
  const RunResult run = train(counted_run(folder.path(), {{"schedule", schedule}, {"training.epochs", "2"}}));
  HeardMessages messages;
  const RunResult more =
      resume(run.run, {{"training.epochs", "3"}}, {.listener = &messages, .keep_schedule = schedule.size() > 30});
  // The rate has dropped before the resume.
  if (schedule.find("threshold") != std::string::npos) CHECK(more.epochs[0].learning_rate < 0.005);
  CHECK_THAT(messages.all, !Contains("was made for"));
}

TEST_CASE("a run that is over names the limit that ends it, and keeps its settings") {
  const TemporaryFolder folder;
  const RunResult run = train(counted_run(folder.path(), {{"training.max_steps", "7"}}));
  const std::string settings = read_text(run.run / "resolved.yaml");
  HeardMessages messages;
  resume(run.run, {{"training.epochs", "9"}}, {.listener = &messages});
  CHECK_THAT(messages.all,
             Contains("already finished after 7 steps; to go on, give training.max_steps a larger value"));
  CHECK(read_text(run.run / "resolved.yaml") == settings);
  CHECK_THROWS_WITH(resume(run.run, {{"training.max_steps", "3"}}), Contains("give training.max_steps a larger value"));
  messages.all.clear();
  resume(run.run, {{"training.epochs", "1"}, {"training.max_steps", "0"}}, {.listener = &messages});
  CHECK_THAT(messages.all, !Contains("resolved.yaml") && Contains("resumed at step 7 of 10"));
  messages.all.clear();
  resume(run.run, {}, {.listener = &messages});
  CHECK_THAT(messages.all, Contains("to go on, give training.epochs a larger value"));
}

TEST_CASE("edits of a run folder's files are named with the way to make them") {
  const TemporaryFolder folder;
  const RunResult run = train(counted_run(folder.path(), {{"training.epochs", "1"}}));
  const std::filesystem::path file = run.run / "experiment.yaml";
  const auto told = [&](const Overrides& overrides = {}) {
    HeardMessages messages;
    resume(run.run, overrides, {.listener = &messages});
    return messages.all;
  };
  CHECK_THAT(told(), !Contains("experiment.yaml"));

  std::string text = read_text(file);
  write_atomically(file, "# A remark.\n" + text);
  CHECK_THAT(told(), !Contains("experiment.yaml"));

  const auto replace = [&](const std::string& from, const std::string& to) {
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
  };
  replace("{type: adam, learning_rate: 0.01}", "sgd");
  replace("epochs: 4, ema: 0.9, log_every_steps: 1", "epochs: 2, log_every_steps: 1, freeze: [a, 'b c']");
  write_atomically(file, text);
  const std::string notice = told({{"training.epochs", "1"}});
  CHECK_THAT(notice, Contains(file.string() + " differs from it, which changes nothing:"));
  CHECK_THAT(notice, Contains("optimizer.type: sgd (was adam)"));
  CHECK_THAT(notice, Contains("optimizer.learning_rate (left out, was 0.01)"));
  CHECK_THAT(notice, Contains("training.ema (left out, was 0.9)"));
  CHECK_THAT(notice, Contains("training.freeze: [a, \"b c\"] (new)"));
  CHECK_THAT(notice, Contains("--set optimizer.type=sgd"));
  CHECK_THAT(notice, !Contains("training.epochs: 2"));
  CHECK_THAT(told(), Contains("training.epochs: 2 (was 4)"));

  // Settings that --set has applied are in use, however a number is written.
  replace("log_every_steps: 1", "log_every_steps: 1, check_gradients: true");
  replace("epochs: 2", "epochs: 2e0");
  write_atomically(file, text);
  told({{"training.epochs", "2"}, {"training.check_gradients", "true"}});
  CHECK_THAT(told(), !Contains("check_gradients") && !Contains("2e0") && Contains("optimizer.type"));

  write_atomically(file, "{ no yaml");
  CHECK_THAT(told(), Contains(file.string() + " differs from it, which changes nothing"));
  std::filesystem::remove(file);
  CHECK_THAT(told(), !Contains("experiment.yaml"));

  const std::filesystem::path resolved = run.run / "resolved.yaml";
  text = read_text(resolved);
  CHECK_THAT(told(), !Contains("resolved.yaml"));
  replace("  learning_rate: 0.01", "  learning_rate: 0.02");
  write_atomically(resolved, text);
  CHECK_THAT(told(), Contains("--set optimizer.learning_rate=0.02"));
  write_atomically(resolved, "{ no yaml");
  CHECK_THAT(told(), Contains("resolved.yaml differs from it"));
  std::filesystem::remove(resolved);
  CHECK_NOTHROW(told());
}
