// Metrics that the evaluated rows do not define, and infinite ones: shown as such, never the best, no reason to stop.
#include <gpunn/evaluation.hpp>
#include <gpunn/metric.hpp>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "common/metric_json.hpp"
#include "session/metric.hpp"
#include "session/plateau.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Metric kRising{"psnr", "PSNR", true, false}, kFalling{"rmse", "RMSE", false, false};

// A regression whose test rows have the same target or not.
Experiment table_experiment(const TemporaryFolder& folder, bool is_constant, const Overrides& more = {}) {
  for (const bool is_test : {false, true}) {
    std::ofstream file(folder.path() / (is_test ? "test.csv" : "train.csv"));
    file << "x,y\n";
    for (int i = 0; i < 40; ++i) {
      const double x = (i % 11) / 5.0 - 1;
      file << x << ',' << (is_test && is_constant ? 0.7 : 2 * x + 0.1 * (i % 3)) << '\n';
    }
  }
  return parse_experiment(
      "name: table\ntask: regression\nmodel: {layers: [linear: {units: 1}]}\ndata: {dataset: csv, path: " +
          (folder.path() / "train.csv").string() + ", test_path: " + (folder.path() / "test.csv").string() +
          ", target_columns: [y], batch_size: 8}\noptimizer: {type: sgd, learning_rate: 0.01}\n"
          "training: {epochs: 4}\nearly_stopping: {monitor: r2, patience: 1}\n"
          "checkpoint: {monitor: r2}\nbackend: cpu\nruns: " +
          folder.path().string() + "\n",
      "table.yaml", more);
}

// The messages of a run.
class Heard : public TrainingListener {
 public:
  void on_message(const std::string& text) override { messages += text + "\n"; }
  std::string messages;
};

}  // namespace

TEST_CASE("an undefined value is never better, and any other one is better than it") {
  for (const Metric& metric : {kRising, kFalling}) {
    CHECK_FALSE(is_better(metric, kUndefined, kUndefined));
    for (const double value : {-kInfinity, -1.0, 0.0, kInfinity}) {
      CHECK(is_better(metric, value, kUndefined));
      CHECK_FALSE(is_better(metric, kUndefined, value));
      CHECK_FALSE(is_better(metric, value, value));
    }
  }
}

TEST_CASE("an infinity is the best or the worst value, and ties with itself") {
  CHECK(is_better(kRising, kInfinity, 99, 0.5));
  CHECK_FALSE(is_better(kRising, 99, kInfinity));
  CHECK_FALSE(is_better(kRising, kInfinity, kInfinity, 0.5));
  CHECK(is_better(kRising, -99, -kInfinity, 0.5));
  CHECK(is_better(kFalling, -kInfinity, -99, 0.5));
  CHECK(is_better(kFalling, 99, kInfinity, 0.5));
  CHECK_FALSE(is_better(kFalling, kInfinity, 99));
  CHECK_FALSE(is_better(kFalling, -kInfinity, -kInfinity));
}

TEST_CASE("means leave undefined values out, and are undefined without any other") {
  DefinedMean mean;
  mean.add(kUndefined);
  CHECK_FALSE(is_defined(mean.value()));
  mean.add(1);
  mean.add(kUndefined);
  mean.add(2);
  CHECK(mean.value() == 1.5);
  mean.add(kInfinity);
  CHECK(mean.value() == kInfinity);
}

TEST_CASE("a value has one form for readers and one in JSON") {
  const auto digits = [](double value) { return std::to_string(static_cast<int>(value)); };
  CHECK(metric_text(kUndefined, digits) == "-");
  CHECK(metric_text(kInfinity, digits) == "inf");
  CHECK(metric_text(-kInfinity, digits) == "-inf");
  CHECK(metric_text(7, digits) == "7");
  using nlohmann::json;
  CHECK(metric_json<json>(kUndefined).is_null());
  CHECK(metric_json<json>(kInfinity) == "inf");
  for (const double value : {-kInfinity, 0.25, kInfinity}) CHECK(metric_of_json(metric_json<json>(value)) == value);
  CHECK_FALSE(is_defined(metric_of_json(json())));
}

TEST_CASE("a plateau takes no notice of an undefined value, and sees an infinite one as the best") {
  ReduceOnPlateau config;
  config.monitor = "psnr";
  config.patience = 1;
  training::Plateau plateau;
  for (int epoch = 0; epoch < 5; ++epoch) CHECK_FALSE(plateau.observe(config, 1, kUndefined));
  CHECK_FALSE(plateau.observe(config, 1, 30));
  CHECK_FALSE(plateau.observe(config, 1, kInfinity));
  CHECK_FALSE(plateau.observe(config, 1, kInfinity));
  CHECK(plateau.observe(config, 1, kInfinity));
}

TEST_CASE("a run whose metric is undefined in every epoch ends as it should, with the last weights") {
  const TemporaryFolder folder;
  Heard heard;
  RunOptions options;
  options.listener = &heard;
  const RunResult run = train(table_experiment(folder, true), options);
  CHECK(run.epochs.size() == 4);
  CHECK_FALSE(run.stopped_early);
  CHECK(run.best_epoch == 0);
  CHECK_FALSE(is_defined(run.best_metric));
  CHECK_FALSE(is_defined(run.final_evaluation.scores.value("r2")));
  CHECK(run.final_evaluation.scores.value("rmse") > 0);
  CHECK_THAT(heard.messages, Contains("r2 (checkpoint.monitor) was undefined in every epoch") && Contains("last.h5"));
  CHECK_FALSE(std::filesystem::exists(run.run / "best.h5"));
  CHECK(evaluate({.path = run.run, .overrides = {}}).loss == run.final_evaluation.loss);
  const ClassEvalReport report = evaluate_classes({.path = run.run, .overrides = {}});
  CHECK_FALSE(is_defined(report.outputs.at(0).scores.value("r2")));
}

TEST_CASE("a defined metric chooses the best epoch and stops early as before") {
  const TemporaryFolder folder;
  const RunResult run = train(table_experiment(folder, false, {{"optimizer.learning_rate", "1e-12"}}));
  CHECK(run.stopped_early);
  CHECK(run.best_epoch >= 1);
  CHECK(is_defined(run.best_metric));
  CHECK(std::filesystem::exists(run.run / "best.h5"));
}

TEST_CASE("an infinite PSNR is the best one, and the epochs after it are no better") {
  const TemporaryFolder folder;
  for (const std::string part : {"train", "test"}) {
    std::filesystem::create_directories(folder.path() / part);
    for (const std::string name : {"a", "b"}) {
      std::ofstream file(folder.path() / part / (name + ".ppm"), std::ios::binary);
      file << "P6 48 48 255\n" << std::string(3 * 48 * 48, '\0');
    }
  }
  // Without a bias a convolution makes black images of black images, whatever its weights.
  const RunResult run = train(
      parse_experiment("task: super_resolution\nmodel: {layers: [conv2d: {filters: 3, kernel: 1, bias: false}]}\n"
                       "data: {dataset: photograph_folder, path: " +
                           (folder.path() / "train").string() + ", test_path: " + (folder.path() / "test").string() +
                           ", scale: 2, patch_size: 24, patches: 32, batch_size: 16, input: enlarged, colours: rgb}\n"
                           "optimizer: {type: sgd}\ntraining: {epochs: 5}\ncheckpoint: {monitor: psnr}\n"
                           "early_stopping: {monitor: psnr, patience: 2}\nbackend: cpu\nruns: " +
                           folder.path().string() + "\n",
                       "black.yaml"));
  CHECK(run.best_metric == kInfinity);
  CHECK(run.best_epoch == 1);
  CHECK(run.epochs.size() == 3);
  CHECK(run.stopped_early);
  CHECK(std::filesystem::exists(run.run / "best.h5"));
  std::ifstream records(run.run / "metrics.jsonl");
  const std::string text{std::istreambuf_iterator<char>(records), {}};
  CHECK_THAT(text, Contains("\"test_psnr\":\"inf\""));
}
