// Soft targets: the table that a training gathers its targets from, and trainings with it.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "session/session.hpp"
#include "tasks/classification.hpp"
#include "training/fixtures.hpp"
#include "training/predictions.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

LossConfig cross_entropy(double smoothing, std::vector<double> weights) {
  CrossEntropy loss;
  loss.label_smoothing = smoothing;
  loss.class_weights = std::move(weights);
  return {loss};
}

std::vector<float> first_losses(const TemporaryFolder& folder, const std::vector<Override>& loss) {
  training::Session session = training::Session::open(small_mlp(folder.path(), loss));
  session.train_steps(4);
  return session.losses(0, 4);
}

}  // namespace

TEST_CASE("the table of targets is one-hot, smoothed and weighted") {
  using tasks::class_target_table;
  CHECK(class_target_table(cross_entropy(0, {}), 3, "points") == std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  CHECK(class_target_table(cross_entropy(0.5, {}), 2, "points") == std::vector<float>{0.75F, 0.25F, 0.25F, 0.75F});
  CHECK(class_target_table(cross_entropy(0, {2, 3}), 2, "points") == std::vector<float>{2, 0, 0, 3});
  CHECK(class_target_table(cross_entropy(0.5, {2, 4}), 2, "points") == std::vector<float>{1.5F, 1, 0.5F, 3});
  CHECK(class_target_table({MeanSquaredError()}, 2, "points") == std::vector<float>{1, 0, 0, 1});
}

TEST_CASE("the targets give PyTorch's cross-entropy with weights and label smoothing") {
  // torch.nn.functional.cross_entropy(x, y, weight=[1, 2, 0.5], label_smoothing=0.25, reduction="none") in float64
  const std::vector<std::vector<double>> x{{2, -1, 0.5}, {0, 3, 1}, {-2, 0.25, 0.75}};
  const std::vector<std::size_t> label{0, 2, 1};
  const std::vector<double> expected{0.813865934017872, 1.1965640130375237, 1.9818008559672715};
  const std::vector<float> table = tasks::class_target_table(cross_entropy(0.25, {1, 2, 0.5}), 3, "points");
  for (std::size_t row = 0; row < 3; ++row) {
    double sum = 0, loss = 0;
    for (const double value : x[row]) sum += std::exp(value);
    for (std::size_t c = 0; c < 3; ++c) {
      loss -= static_cast<double>(table[label[row] * 3 + c]) * (x[row][c] - std::log(sum));
    }
    CHECK(loss == Approx(expected[row]).epsilon(1e-6));
  }
}

TEST_CASE("class weights for another number of classes are refused where they stand") {
  const TemporaryFolder folder;
  const std::string models = (std::filesystem::path(GPUNN_SOURCE_DIR) / "models").string();
  const std::string text = "model: " + models +
                           "/mlp.yaml\n"
                           "data: {dataset: digits, synthetic_train: 128, synthetic_test: 100}\n"
                           "loss:\n"
                           "  class_weights: [1, 2, 1]\n"
                           "backend: cpu\n";
  CHECK_THROWS_WITH(
      training::Session::open(parse_experiment(text, "e.yaml")),
      Contains("e.yaml:4:3: loss.class_weights: expected 10 numbers, one for each class of 'digits', found 3"));
}

TEST_CASE("a training weighs its loss, an evaluation does not") {
  const TemporaryFolder folder;
  const std::vector<float> plain = first_losses(folder, {});
  // Equal weights scale the loss; a rate scaled the other way makes the same steps of it.
  const std::vector<float> doubled = first_losses(
      folder, {{"loss.class_weights", "[2, 2, 2, 2, 2, 2, 2, 2, 2, 2]"}, {"optimizer.learning_rate", "0.025"}});
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(doubled[i] == Approx(2 * plain[i]).epsilon(1e-4));
  // Of untrained outputs that are nearly equal, smoothing leaves the loss nearly as it is; but not quite.
  const std::vector<float> smoothed = first_losses(folder, {{"loss.label_smoothing", "0.3"}});
  CHECK(smoothed[0] == Approx(plain[0]).epsilon(0.05));
  CHECK(smoothed[0] != plain[0]);

  training::Session a = training::Session::open(small_mlp(folder.path()));
  training::Session b = training::Session::open(small_mlp(
      folder.path(), {{"loss.label_smoothing", "0.3"}, {"loss.class_weights", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"}}));
  CHECK(a.evaluate().loss == b.evaluate().loss);
}

TEST_CASE("with label smoothing a training learns as well, and is less sure of it") {
  const TemporaryFolder folder;
  const auto surest = [&](const std::string& smoothing) {
    training::Session session = training::Session::open(small_lenet(
        folder.path(),
        {{"loss.label_smoothing", smoothing}, {"data.synthetic_train", "4000"}, {"data.residency", "stream"}}));
    session.train_steps(4 * session.steps_per_epoch());
    CHECK(session.evaluate().scores.value("accuracy") > 0.8);
    const std::vector<float> p = predictions_of(session);
    return *std::max_element(p.begin(), p.end());
  };
  CHECK(surest("0.4") < 0.9F);
  CHECK(surest("0") > 0.95F);
}

namespace {

// Two classes of points in a plane, one on each side of a line with some room between.
std::filesystem::path two_classes(const TemporaryFolder& folder) {
  const std::filesystem::path file = folder.path() / "two.csv";
  std::ofstream out(file);
  out << "a,b,class\n";
  for (int i = 0; i < 400; ++i) {
    const double a = std::sin(1.7 * i), b = std::cos(2.9 * i) + (i % 2 == 0 ? 1.3 : -1.3);
    out << a << ',' << b << ',' << (i % 2 == 0 ? "above" : "below") << '\n';
  }
  return file;
}

Experiment on_two_classes(const TemporaryFolder& folder, int units, const std::string& loss) {
  return parse_experiment("model: {layers: [linear: {units: " + std::to_string(units) +
                              "}]}\n"
                              "data: {dataset: csv, path: " +
                              two_classes(folder).string() +
                              ", test_fraction: 0.25, batch_size: 50, residency: stream}\n"
                              "loss: " +
                              loss +
                              "\n"
                              "optimizer: {type: sgd, learning_rate: 0.5}\n"
                              "backend: cpu\n"
                              "runs: " +
                              (folder.path() / "runs").string() + "\n",
                          "e.yaml");
}

}  // namespace

TEST_CASE("every loss trains a classifier") {
  const TemporaryFolder folder;
  // Those that take a mean over the classes have small gradients.
  const std::vector<std::pair<std::string, std::string>> losses{{"{type: binary_cross_entropy}", "0.3"},
                                                                {"{type: hinge}", "0.05"},
                                                                {"{type: hinge, power: 2, margin: 0.5}", "0.05"},
                                                                {"{type: huber, delta: 0.5}", "2"}};
  const int which = GENERATE(0, 1, 2, 3);
  const auto& [loss, rate] = losses.at(static_cast<std::size_t>(which));
  INFO(loss);
  training::Session session = training::Session::open(small_lenet(folder.path(), {{"loss", loss},
                                                                                  {"optimizer.learning_rate", rate},
                                                                                  {"data.synthetic_train", "4000"},
                                                                                  {"data.residency", "stream"}}));
  const double before = session.evaluate().loss;
  session.train_steps(4 * session.steps_per_epoch());
  const EvalReport after = session.evaluate();
  CHECK(after.loss < 0.7 * before);
  CHECK(after.scores.value("accuracy") > 0.7);
  const std::vector<float> p = predictions_of(session);
  CHECK(*std::min_element(p.begin(), p.end()) >= 0);
  CHECK(*std::max_element(p.begin(), p.end()) <= 1);
}

TEST_CASE("binary cross-entropy tells two classes apart with one output or with two") {
  const TemporaryFolder folder;
  const int units = GENERATE(1, 2);
  INFO(units << " outputs");
  training::Session session = training::Session::open(on_two_classes(folder, units, "binary_cross_entropy"));
  CHECK(session.evaluate().loss == Approx(std::log(2.0)).epsilon(0.5));
  session.train_steps(20 * session.steps_per_epoch());
  const EvalReport report = session.evaluate();
  CHECK(report.scores.value("accuracy") > 0.95);
  CHECK(session.sums().total(tasks::Total::correct) >
        0.85 * session.sums().total(tasks::Total::rows));  // since the first step

  const std::vector<float> p = predictions_of(session);
  const std::vector<int32_t> label = labels_of(session.dataset().test);
  REQUIRE(p.size() == 2 * label.size());
  // The probabilities are those of the loss that was reported: the mean of -log of what the labels got.
  double loss = 0;
  for (std::size_t i = 0; i < label.size(); ++i) {
    const double first = static_cast<double>(p[2 * i]), second = static_cast<double>(p[2 * i + 1]);
    if (units == 1) CHECK(first + second == Approx(1).epsilon(1e-5));
    loss -= label[i] == 0 ? std::log(first) : std::log(second);
    if (units == 2) loss -= label[i] == 0 ? std::log1p(-second) : std::log1p(-first);
  }
  CHECK(loss / static_cast<double>(label.size()) / units == Approx(report.loss).epsilon(1e-3));

  double rows = 0;
  session.evaluate_rows([&](const tasks::EvaluatedRows& outputs) {
    rows += static_cast<double>(outputs.losses.size());
    CHECK(outputs.scores.size() == 2 * outputs.losses.size());
  });
  CHECK(rows == static_cast<double>(label.size()));
}

TEST_CASE("one output is for two classes and binary cross-entropy alone") {
  const TemporaryFolder folder;
  const std::string loss = GENERATE(as<std::string>(), "cross_entropy", "huber", "hinge");
  CHECK_THROWS_WITH(training::Session::open(on_two_classes(folder, 1, loss)).train_step(),
                    Contains("the data has 2 classes: expected f32[50, 2]"));
  CHECK_THROWS_WITH(training::Session::open(on_two_classes(folder, 3, "binary_cross_entropy")).train_step(),
                    Contains("expected f32[50, 2] or f32[50, 1]"));
}
