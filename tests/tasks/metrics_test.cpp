// The metrics of tasks give what scikit-learn gives; tests/fixtures/metrics.py says how those numbers came.
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "tasks/task.hpp"

using namespace gpunn;
using namespace gpunn::tasks;
using nlohmann::json;

namespace {

using Floats = std::vector<float>;

constexpr double kClose = 1e-12;

const TaskMetric& metric_called(std::span<const TaskMetric> metrics, const std::string& name) {
  for (const TaskMetric& one : metrics) {
    if (one.metric.name == name) return one;
  }
  throw std::out_of_range(name);
}

// Fed in batches of 7 rows, as an evaluation feeds them.
std::unique_ptr<RowMetric> fed(const TaskMetric& metric, int64_t outputs, const Floats& predictions,
                               const Floats& targets) {
  std::unique_ptr<RowMetric> result = metric.of_rows();
  const std::size_t step = 7 * static_cast<std::size_t>(outputs);
  for (std::size_t first = 0; first < targets.size(); first += step) {
    const std::size_t count = std::min(step, targets.size() - first);
    result->add({.outputs = outputs,
                 .predictions = std::span(predictions).subspan(first, count),
                 .targets = std::span(targets).subspan(first, count)});
  }
  return result;
}

double value_of_metric(const std::string& task, const std::string& name, int64_t outputs, const Floats& predictions,
                       const Floats& targets) {
  return fed(metric_called(find(task).metrics(), name), outputs, predictions, targets)->value();
}

}  // namespace

TEST_CASE("metrics are scikit-learn's, of all outputs and of each") {
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/metrics.json");
  const json cases = json::parse(file);
  REQUIRE(cases.size() == 4);
  for (const json& one : cases) {
    const Task& task = find(one.at("task").get<std::string>());
    const auto predictions = one.at("predictions").get<Floats>(), targets = one.at("targets").get<Floats>();
    const auto outputs = one.at("outputs").get<int64_t>();
    CHECK(one.at("metrics").size() == task.metrics().size());
    for (const auto& [name, expected] : one.at("metrics").items()) {
      CAPTURE(name);
      const auto metric = fed(metric_called(task.metrics(), name), outputs, predictions, targets);
      CHECK(std::abs(metric->value() - expected.get<double>()) < kClose);
    }
    CHECK(one.at("by_output").size() == task.output_metrics().size());
    for (const auto& [name, expected] : one.at("by_output").items()) {
      CAPTURE(name);
      const auto metric = fed(metric_called(task.output_metrics(), name), outputs, predictions, targets);
      const std::vector<double> values = metric->by_output();
      REQUIRE(values.size() == expected.size());
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::abs(values[i] - expected[i].get<double>()) < kClose);
    }
  }
}

TEST_CASE("outputs that the rows can't score are left out of a mean") {
  // The second column does not vary; no row has the second label.
  CHECK(value_of_metric("regression", "r2", 2, {1, 5, 3, 6}, {1, 5, 3, 5}) == 1);
  CHECK(std::isnan(value_of_metric("regression", "r2", 1, {1, 2}, {3, 3})));
  CHECK(value_of_metric("multi_label", "map", 2, {0.9F, 0.1F, 0.2F, 0.4F}, {1, 0, 0, 0}) == 1);
  CHECK(std::isnan(value_of_metric("multi_label", "map", 1, {0.5F}, {0})));
  CHECK(value_of_metric("multi_label", "f1", 2, {0.9F, 0.1F, 0.2F, 0.4F}, {1, 0, 0, 0}) == 1);
}

TEST_CASE("scores that separate the rows have an average precision of exactly 1") {
  std::vector<float> scores, targets;
  for (int row = 0; row < 150; ++row) {
    scores.push_back(1 - 0.005F * static_cast<float>(row));
    targets.push_back(row < 49 ? 1 : 0);
    CHECK((row < 49 || value_of_metric("multi_label", "map", 1, scores, targets) == 1));
  }
}

TEST_CASE("a row is told in words") {
  const std::vector<std::string> names = {"ant", "bee", "cat"};
  const Floats values = {0.7F, 0.2F, 0.9F};
  CHECK(find("multi_label").row_text(values, names) == "ant, cat");
  CHECK(find("multi_label").row_text(Floats{0, 0, 0}, names) == "none");
  CHECK(find("regression").row_text(Floats{1.25F}, {"price"}) == "1.25");
  CHECK(find("regression").row_text(Floats{1.25F, -3e6F}, {"price", "rent"}) == "price 1.25, rent -3e+06");
  CHECK(find("classification").row_text(values, names) == "cat");
}

TEST_CASE("each task says what it needs, and its metrics have names of their own") {
  std::vector<std::string> seen;
  for (const Task* task : all()) {
    CAPTURE(task->name());
    CHECK_FALSE(task->metrics().empty());
    CHECK_FALSE(task->losses().empty());
    CHECK(task->has_labels() == (task->target_kind() == "class"));
    for (const TaskMetric& one : task->metrics()) {
      CHECK((one.of_rows == nullptr) != (one.of_sums == nullptr));
      CHECK(monitored(one.metric.name).larger_is_better == one.metric.larger_is_better);
    }
  }
  CHECK_FALSE(monitored("mae").larger_is_better);
  CHECK(monitored("r2").larger_is_better);
}

TEST_CASE("a label that no row has is undefined in each figure, one that is never predicted is not") {
  // Labels: found, never predicted, predicted though no row has it.
  const Floats targets{1, 1, 0, 0, 1, 0, 1, 0, 0}, predictions{0.9F, 0.1F, 0.9F, 0.2F, 0.3F, 0.2F, 0.8F, 0.2F, 0.1F};
  const Task& task = find("multi_label");
  for (const TaskMetric& one : task.output_metrics()) {
    CAPTURE(one.metric.name);
    const std::vector<double> values = fed(one, 3, predictions, targets)->by_output();
    CHECK(values.at(0) == 1);
    CHECK(is_defined(values.at(1)));
    CHECK_FALSE(is_defined(values.at(2)));
  }
  CHECK(value_of_metric("multi_label", "f1", 3, predictions, targets) == 0.5);
  CHECK(value_of_metric("multi_label", "map", 3, predictions, targets) == Approx((1 + (1 + 2.0 / 3) / 2) / 2));
  const Floats none(9, 0.0F);
  CHECK_FALSE(is_defined(value_of_metric("multi_label", "f1", 3, predictions, none)));
  CHECK_FALSE(is_defined(value_of_metric("multi_label", "map", 3, predictions, none)));
}

TEST_CASE("R2 of a constant target or of one row is undefined, and left out of the mean of the columns") {
  const Floats targets{5, 1, 5, 2, 5, 3}, predictions{4, 1, 5, 2, 6, 3};
  CHECK(value_of_metric("regression", "r2", 2, predictions, targets) == 1);
  CHECK_FALSE(is_defined(value_of_metric("regression", "r2", 1, {1, 2, 3}, {7, 7, 7})));
  CHECK_FALSE(is_defined(value_of_metric("regression", "r2", 1, {1}, {7})));
}
