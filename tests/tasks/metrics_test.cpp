// The metrics of tasks give what scikit-learn gives; tests/fixtures/metrics.py says how those numbers came.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"
#include "tasks/metrics/label_sets.hpp"
#include "tasks/metrics/number_errors.hpp"
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

// A data set whose evaluated rows have these targets, [rows, outputs].
Dataset with_targets(const std::string& kind, int64_t outputs, const Floats& targets) {
  Dataset set;
  set.fields.target() = fields::target_field(kind, fields::numbered(outputs));
  set.test.fields[set.fields.target().name] = fields::label_values(targets, outputs);
  return set;
}

// Fed in batches of 7 rows, as an evaluation feeds them.
std::unique_ptr<MetricTally> fed(const TaskMetric& metric, const Dataset& set, const Floats& predictions) {
  std::unique_ptr<MetricTally> result = metric.tally();
  const auto outputs = static_cast<std::size_t>(set.fields.target().count());
  const std::size_t rows = predictions.size() / outputs;
  const Floats losses(rows);
  for (std::size_t first = 0; first < rows; first += 7) {
    const std::size_t count = std::min<std::size_t>(7, rows - first);
    const auto values = std::span(predictions).subspan(first * outputs, count * outputs);
    result->add({.dataset = set,
                 .first = static_cast<int64_t>(first),
                 .scores = values,
                 .predictions = values,
                 .losses = std::span(losses).first(count)});
  }
  return result;
}

std::string kind_of(const std::string& task) { return std::string(find(task).target_kind()); }

double value_of_metric(const std::string& task, const std::string& name, int64_t outputs, const Floats& predictions,
                       const Floats& targets) {
  const Dataset set = with_targets(kind_of(task), outputs, targets);
  return fed(metric_called(find(task).metrics(), name), set, predictions)->value({});
}

}  // namespace

TEST_CASE("metrics are scikit-learn's, of all outputs and of each") {
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/metrics.json");
  const json cases = json::parse(file);
  REQUIRE(cases.size() == 4);
  const auto of_numbers = number_errors();
  const auto of_labels = single_label_metrics();
  for (const json& one : cases) {
    const auto name_of_task = one.at("task").get<std::string>();
    const Task& task = find(name_of_task);
    const auto predictions = one.at("predictions").get<Floats>(), targets = one.at("targets").get<Floats>();
    const Dataset set = with_targets(kind_of(name_of_task), one.at("outputs").get<int64_t>(), targets);
    CHECK(one.at("metrics").size() == task.metrics().size());
    for (const auto& [name, expected] : one.at("metrics").items()) {
      CAPTURE(name);
      const auto metric = fed(metric_called(task.metrics(), name), set, predictions);
      CHECK(std::abs(metric->value({}) - expected.get<double>()) < kClose);
    }
    const std::span<const TaskMetric> by_output =
        name_of_task == "regression" ? std::span<const TaskMetric>(of_numbers) : std::span<const TaskMetric>(of_labels);
    CHECK(one.at("by_output").size() == by_output.size());
    for (const auto& [name, expected] : one.at("by_output").items()) {
      CAPTURE(name);
      const std::vector<double> values = fed(metric_called(by_output, name), set, predictions)->by_output({});
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
  const Field labels = fields::target_field("label_set", {"ant", "bee", "cat"});
  const Field numbers = fields::target_field("numbers", {"price", "rent"});
  CHECK(labels_text(labels, std::array{0.7, 0.2, 0.9}) == "ant, cat");
  CHECK(labels_text(labels, std::array{0.0, 0.0, 0.0}) == "none");
  CHECK(numbers_text(numbers, std::array{1.25}) == "1.25");
  CHECK(numbers_text(numbers, std::array{1.25, -3e6}) == "price 1.25, rent -3e+06");
}

TEST_CASE("each task says what it needs, and its metrics have names of their own") {
  std::vector<std::string> seen;
  for (const Task* task : all()) {
    CAPTURE(task->name());
    CHECK_FALSE(task->metrics().empty());
    CHECK_FALSE(task->losses().empty());
    for (const TaskMetric& one : task->metrics()) {
      CHECK(one.tally != nullptr);
      CHECK_FALSE((one.on_host && one.while_training));
      CHECK(monitored(one.metric.name).larger_is_better == one.metric.larger_is_better);
    }
  }
  CHECK_FALSE(monitored("mae").larger_is_better);
  CHECK(monitored("r2").larger_is_better);
}

TEST_CASE("accumulators on the device have names of their own, and only the totals are f64") {
  const Experiment experiment;
  const TaskContext context{.experiment = experiment, .outputs = 3};
  for (const Task* task : all()) {
    CAPTURE(task->name());
    const std::vector<Accumulator> evaluated = accumulators_of(*task, context, Phase::evaluation);
    CHECK(evaluated.front().name == kTotals);
    for (const Accumulator& one : evaluated) {
      CAPTURE(one.name);
      CHECK((one.type.dtype == DType::f64) == (one.name == kTotals));
      CHECK(std::ranges::count(evaluated, one.name, &Accumulator::name) == 1);
    }
    // Training keeps some of them.
    for (const Accumulator& one : accumulators_of(*task, context, Phase::training)) {
      CHECK(std::ranges::count(evaluated, one.name, &Accumulator::name) == 1);
    }
  }
}

TEST_CASE("a label that no row has is undefined in each figure, one that is never predicted is not") {
  // Labels: found, never predicted, predicted though no row has it.
  const Floats targets{1, 1, 0, 0, 1, 0, 1, 0, 0}, predictions{0.9F, 0.1F, 0.9F, 0.2F, 0.3F, 0.2F, 0.8F, 0.2F, 0.1F};
  const Dataset set = with_targets("label_set", 3, targets);
  for (const TaskMetric& one : single_label_metrics()) {
    CAPTURE(one.metric.name);
    const std::vector<double> values = fed(one, set, predictions)->by_output({});
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
