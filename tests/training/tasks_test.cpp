// Regression and multi-label, from the data to the evaluation.
#include <gpunn/evaluation.hpp>

#include <cmath>
#include <fstream>

#include "catch.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

Experiment diabetes(const std::filesystem::path& runs, const Overrides& more = {}) {
  return load_experiment(experiment_file("mlp_diabetes"),
                         with({{"backend", "cpu"}, {"runs", runs.string()}, {"training.epochs", "4"}}, more));
}

Experiment two_digits(const std::filesystem::path& runs, const Overrides& more = {}) {
  return load_experiment(experiment_file("lenet_two_digits"), with({{"backend", "cpu"},
                                                                    {"runs", runs.string()},
                                                                    {"data.synthetic_train", "300"},
                                                                    {"data.synthetic_test", "70"},
                                                                    {"data.batch_size", "32"},
                                                                    {"training.epochs", "2"}},
                                                                   more));
}

// Of each epoch, and the weights.
struct TaskOutcome {
  std::vector<double> figures;
  std::vector<std::vector<std::byte>> state;
  bool operator==(const TaskOutcome&) const = default;
};

TaskOutcome task_outcome_of(const RunResult& run) {
  TaskOutcome outcome{.figures = {}, .state = state_bytes(storage::load_checkpoint(run.run / "last.h5"))};
  for (const EpochReport& epoch : run.epochs) {
    outcome.figures.push_back(epoch.train_loss);
    outcome.figures.push_back(epoch.evaluation.loss);
    for (const Score& score : epoch.evaluation.scores) outcome.figures.push_back(score.value);
  }
  return outcome;
}

double score_after_training(const Experiment& experiment, const char* metric) {
  training::Session session = training::Session::open(experiment);
  session.train_steps(session.total_steps());
  return session.evaluate().scores.value(metric);
}

// A table whose second target is the first in other units.
std::filesystem::path write_two_targets(const TemporaryFolder& folder) {
  std::ofstream file(folder.path() / "table.csv");
  file << "x,y,small,large\n";
  for (int i = 0; i < 120; ++i) {
    const double x = (i % 11) / 5.0 - 1, y = (i % 7) / 3.0 - 1, target = 2 * x - y + 0.1 * ((i * 37) % 13);
    file << x << "," << y << "," << target << "," << 100000 + 3000 * target << "\n";
  }
  return folder.path() / "table.csv";
}

}  // namespace

// scikit-learn's MLPRegressor reaches 0.6211, the mean of 20 seeds whose standard deviation is 0.013, with the same
// layers, optimizer, batches and epochs: tests/fixtures/regression.py.
TEST_CASE("regression on diabetes is as good as scikit-learn's") {
  const TemporaryFolder folder;
  double sum = 0;
  constexpr int kSeeds = 10;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    sum += score_after_training(
        diabetes(folder.path(), {{"training.epochs", "30"}, {"training.seed", std::to_string(seed)}}), "r2");
  }
  CAPTURE(sum / kSeeds);
  CHECK(std::abs(sum / kSeeds - 0.6211) < 0.02);
}

TEST_CASE("a streamed set of targets trains to the bits of a resident one") {
  const TemporaryFolder folder;
  const auto outcome = [&](const char* task, const char* residency) {
    // A batch that is not full, in training and in evaluation.
    const Overrides more{{"data.residency", residency}, {"data.eval_batch_size", "9"}};
    return task_outcome_of(
        train(std::string(task) == "regression" ? diabetes(folder.path(), more) : two_digits(folder.path(), more)));
  };
  for (const char* task : {"regression", "multi_label"}) {
    CAPTURE(task);
    const TaskOutcome resident = outcome(task, "device"), streamed = outcome(task, "stream");
    CHECK(resident.figures == streamed.figures);
    CHECK(resident.state == streamed.state);
    CHECK(resident.figures.size() >= 10);
  }
}

TEST_CASE("a regression that is stopped and resumed gives the straight run's bits") {
  const TemporaryFolder folder;
  const Experiment experiment =
      diabetes(folder.path(), {{"training.log_every_steps", "1"},
                               {"schedule",
                                "{type: reduce_on_plateau, monitor: mae, patience: 0, threshold: 3, "
                                "threshold_mode: absolute}"},
                               {"training.ema", "0.9"},
                               {"early_stopping", "{monitor: r2, patience: 50}"}});
  const auto [straight, part] =
      straight_and_resumed(experiment, folder.path(), 26);  // in the third epoch of eleven steps
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  CHECK(same_state(straight.run / "best.h5", part.run / "best.h5"));
  CHECK(part.final_evaluation.loss == straight.final_evaluation.loss);
}

TEST_CASE("schedules, early stopping and the best checkpoint go by the metrics of a task") {
  const TemporaryFolder folder;
  // No epoch improves by so much: the rate falls after each, and the training ends after two.
  const RunResult stopped =
      train(diabetes(folder.path(), {{"training.epochs", "9"},
                                     {"early_stopping", "{monitor: r2, patience: 2, min_delta: 5}"},
                                     {"schedule",
                                      "{type: reduce_on_plateau, monitor: mae, patience: 0, factor: 0.5, "
                                      "threshold: 900, threshold_mode: absolute}"}}));
  CHECK(stopped.stopped_early);
  CHECK(stopped.epochs.size() == 3);
  CHECK(stopped.epochs.at(2).learning_rate < stopped.epochs.at(0).learning_rate);

  const RunResult by_error = train(diabetes(folder.path(), {{"checkpoint.monitor", "rmse"}}));
  double least = HUGE_VAL;
  for (const EpochReport& epoch : by_error.epochs) least = std::min(least, epoch.evaluation.scores.value("rmse"));
  CHECK(by_error.best_metric == least);
  CHECK(by_error.monitor.name == "rmse");
  CHECK(evaluate({.path = by_error.run, .overrides = {}}).scores.value("rmse") == least);
}

TEST_CASE("accumulation, averages, mixup and a validation share know targets") {
  const TemporaryFolder folder;
  const auto loss_of = [&](const Overrides& more) {
    const RunResult run = train(diabetes(folder.path(), with({{"training.epochs", "30"}}, more)));
    CHECK(run.final_evaluation.scores.value("r2") > 0.3);
    return run.epochs.back().train_loss;
  };
  const double plain = loss_of({{"data.drop_last", "true"}});
  // Two halves make the batch, but for rounding.
  const double halves = loss_of({{"data.drop_last", "true"}, {"data.batch_size", "16"}, {"training.accumulate", "2"}});
  CHECK(std::abs(plain - halves) < 1e-3 * plain);
  loss_of({{"training.ema", "0.8"}});
  loss_of({{"data.validation_fraction", "0.2"}});
  CHECK(loss_of({{"augmentation.mixup", "0.4"}}) != plain);
  loss_of({{"loss", "{type: huber, delta: 0.5}"}});
  const RunResult labels = train(two_digits(
      folder.path(), {{"data.validation_fraction", "0.2"}, {"augmentation.mixup", "0.2"}, {"training.ema", "0.5"}}));
  CHECK(labels.epochs.back().evaluation.rows == 60);
  CHECK(labels.epochs.back().evaluation.scores.value("map") > 0);
}

TEST_CASE("several target columns of any size are learnt alike, and told in their own units") {
  const TemporaryFolder folder;
  const std::string text =
      "task: regression\n"
      "model: {layers: [linear: {units: 32, activation: relu}, linear: {name: output, units: 2}]}\n"
      "data: {dataset: csv, path: " +
      write_two_targets(folder).string() +
      ", target_columns: [small, large], test_fraction: 0.25, batch_size: 10}\n"
      "optimizer: {type: adam, learning_rate: 0.01}\n"
      "training: {epochs: 40}\n"
      "backend: cpu\nruns: " +
      folder.path().string() + "\n";
  const RunResult run = train(parse_experiment(text, "two.yaml"));
  const ClassEvalReport report = evaluate_classes({.path = run.run, .overrides = {}}, 4);
  REQUIRE(report.outputs.size() == 2);
  CHECK(report.classes.empty());
  CHECK(report.output == "target column");
  const OutputReport &small = report.outputs[0], &large = report.outputs[1];
  CHECK(small.name == "small");
  CHECK(small.scores.value("r2") > 0.8);
  CHECK(large.scores.value("r2") > 0.8);
  CHECK(large.scores.value("mae") > 1000 * small.scores.value("mae"));
  CHECK(std::abs(report.total.scores.value("mae") - (small.scores.value("mae") + large.scores.value("mae")) / 2) <
        1e-9 * large.scores.value("mae"));
  CHECK(report.target_values.size() == 60);
  CHECK(report.predicted_values.size() == 60);
  CHECK(report.target_values[1] > 90000);
  REQUIRE(report.worst_rows.size() == 4);
  for (std::size_t i = 1; i < 4; ++i) CHECK(report.worst_rows[i - 1].loss >= report.worst_rows[i].loss);
  CHECK_THAT(report.worst_rows[0].target, Contains("small "));
  CHECK_THAT(report.worst_rows[0].prediction, Contains(", large "));
}

TEST_CASE("each label of a multi-label evaluation is told by itself") {
  const TemporaryFolder folder;
  const RunResult run = train(two_digits(folder.path()));
  const ClassEvalReport report = evaluate_classes({.path = run.run, .overrides = {}}, 3);
  REQUIRE(report.outputs.size() == 10);
  int64_t rows = 0;
  double precision = 0;
  for (const OutputReport& one : report.outputs) {
    rows += one.rows.value();
    precision += one.scores.value("average_precision") / 10;
  }
  CHECK(rows > 70);
  CHECK(rows <= 140);
  CHECK(std::abs(precision - report.total.scores.value("map")) < 1e-12);
  CHECK(report.target_values.empty());
  CHECK(report.worst_rows.size() == 3);
}

TEST_CASE("a task whose loss, last layer or data do not fit is told in one message that names them") {
  const TemporaryFolder folder;
  const auto refused = [&](const Experiment& experiment, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) {
      CHECK_THROWS_WITH(training::Session::open(experiment).training(), Contains(part));
    }
  };
  refused(diabetes(folder.path(), {{"model.parameters.classes", "3"}}),
          {"the task regression with the loss mean_squared_error", "1 target columns of 'csv'",
           "expected f32[32, 1], the model's last layer 'output' gives f32[32, 3]"});
  refused(two_digits(folder.path(), {{"model.parameters.classes", "7"}}),
          {"the task multi_label with the loss binary_cross_entropy", "10 labels of 'two_digits'",
           "'output' gives f32[32, 7]"});
  refused(small_lenet(folder.path(), {{"task", "regression"}}),
          {"'digits' (", "has a class a sample", "the task regression", "loss mean_squared_error",
           "last layer 'output'", "task: classification"});
  refused(
      two_digits(folder.path(), {{"task", "classification"}}),
      {"has any of 10 labels a sample", "the task classification with the loss cross_entropy", "task: multi_label"});
  refused(two_digits(folder.path(), {{"task", "regression"}}), {"any of 10 labels a sample", "the task regression"});
}

// PyTorch reaches 0.9786, the mean of 5 seeds whose standard deviation is 0.002, with the same layers,
// optimizer, batches, epochs and images: tests/fixtures/multi_label.py.
TEST_CASE("multi-label on drawn digits is as good as PyTorch's", "[long]") {
  const TemporaryFolder folder;
  double sum = 0;
  constexpr int kSeeds = 2;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    sum += score_after_training(two_digits(folder.path(), {{"data.synthetic_train", "4000"},
                                                           {"data.synthetic_test", "1000"},
                                                           {"training.epochs", "8"},
                                                           {"schedule", "constant"},
                                                           {"optimizer.learning_rate", "0.002"},
                                                           {"training.seed", std::to_string(seed)}}),
                                "map");
  }
  CAPTURE(sum / kSeeds);
  CHECK(sum / kSeeds > 0.9786 - 0.01);
}
