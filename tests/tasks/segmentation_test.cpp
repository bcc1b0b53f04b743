// Losses and metrics of label maps against PyTorch and scikit-learn; tests/fixtures/segmentation.py has the formulas.
#include "tasks/segmentation/segmentation.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "compiler/autodiff.hpp"
#include "data/images/image.hpp"
#include "data/segmentation/map_classes.hpp"
#include "graph/expressions.hpp"
#include "ops/evaluate.hpp"

using namespace gpunn;
using namespace gpunn::tasks;
using nlohmann::json;
using ops::ReferenceTensor;

namespace {

constexpr double kPixelClose = 1e-12;

json fixture() {
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/segmentation.json");
  return json::parse(file);
}

Experiment experiment_with(const std::string& loss) {
  return parse_experiment(
      "task: segmentation\nmodel: {layers: [conv2d: {filters: 5, kernel: 1}]}\ndata: drawn_shapes\nloss: " + loss +
          "\n",
      "e.yaml");
}

// The step of an experiment on the fixture's images, whose classes are those of `field`.
struct Step {
  json values = fixture();
  Experiment experiment;
  Field field = data::map_field({"a", "b", "c", "d", "e"}, 4, 5);
  TaskContext context{.experiment = experiment, .outputs = 5, .target = &field};
  graph::Graph g;
  ModelOutputs outputs;
  Batch batch;
  ops_test::ValueMap known;

  explicit Step(const std::string& loss) : experiment(experiment_with(loss)) {
    outputs.last = add("logits", {DType::f32, values.at("shape").get<Shape>()}, values.at("logits"));
    batch.fields["map"] = add("labels", {DType::i32, {3, 4, 5}}, values.at("labels"));
    for (const Table& table : find("segmentation").tables(context)) {
      tables.push_back(table);
    }
  }
  std::vector<Table> tables;

  graph::ValueId add(const std::string& name, const TensorType& type, const json& numbers) {
    const graph::ValueId id = g.add_value(name, type, graph::Storage::data);
    known[id] = {type, numbers.get<std::vector<double>>()};
    return id;
  }
  void evaluate() {
    for (std::size_t i = 0; i < g.values().size(); ++i) {
      const auto table = std::ranges::find(tables, g.values()[i].name, &Table::name);
      if (table == tables.end()) continue;
      CHECK(g.values()[i].type == TensorType{DType::f32, table->shape});
      known[static_cast<graph::ValueId>(i)] = {g.values()[i].type, {table->values.begin(), table->values.end()}};
    }
    ops_test::evaluate(g, known);
  }
  ReferenceTensor at(graph::ValueId id) const { return ops_test::tensor_at(g, known, id); }
};

void check_near(const std::vector<double>& found, const json& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (expected[i].is_null()) {
      CHECK_FALSE(is_defined(found[i]));
    } else {
      CHECK(std::abs(found[i] - expected[i].get<double>()) < kPixelClose);
    }
  }
}

// The confusion matrix of a batch of which `count` images count.
std::vector<double> confusion_of(Step& step, int64_t count) {
  const Task& task = find("segmentation");
  std::vector<Accumulator> found = accumulators_of(task, step.context, Phase::training);
  const auto confusion = std::ranges::find(found, pixels::kConfusion, &Accumulator::name);
  REQUIRE(confusion != found.end());
  const graph::ValueId sum = step.g.add_value("sum", confusion->type, graph::Storage::state);
  step.known[sum] = {confusion->type, std::vector<double>(25)};
  step.batch.count = step.add("count", {DType::i32, {}}, json::array({count}));
  confusion->add(step.g, step.context, {step.outputs, step.batch}, sum);
  step.evaluate();
  return step.at(sum).values;
}

}  // namespace

TEST_CASE("losses of pixels and their gradients are PyTorch's in float64") {
  const json cases = fixture().at("losses");
  REQUIRE(cases.size() == 8);
  for (const json& one : cases) {
    const auto loss = one.at("loss").get<std::string>();
    CAPTURE(loss);
    Step step(loss);
    const graph::ValueId rows = find("segmentation").add_training_loss(step.g, step.context, step.outputs, step.batch);
    graph::Expressions e(step.g, "mean");
    const auto gradients = compiler::add_gradients(step.g, e.mean(rows, 1U, false), {step.outputs.last});
    step.evaluate();
    check_near(step.at(rows).values, one.at("rows"));
    check_near(step.at(gradients.front()).values, one.at("gradient"));
  }
}

TEST_CASE("an evaluation's loss has no label smoothing and no weights of classes") {
  const auto rows_of = [](const std::string& loss) {
    Step step(loss);
    const graph::ValueId rows =
        find("segmentation").add_evaluation_loss(step.g, step.context, step.outputs, step.batch);
    step.evaluate();
    return step.at(rows).values;
  };
  CHECK(rows_of("{label_smoothing: 0.5, class_weights: [1, 2, 3, 4, 5]}") == rows_of("cross_entropy"));
  CHECK(rows_of("{type: focal, class_weights: [1, 2, 3, 4, 5]}") == rows_of("focal"));
  CHECK(rows_of("{type: focal, gamma: 0}") == rows_of("cross_entropy"));
}

TEST_CASE("metrics of pixels are scikit-learn's") {
  Step step("cross_entropy");
  check_near(confusion_of(step, 3), step.values.at("confusion"));
  Accumulated sums;
  sums.set(pixels::kConfusion, step.values.at("confusion").get<std::vector<double>>());
  const MetricTallies tallies(find("segmentation").metrics(), Phase::training);
  const Scores scores = tallies.scores(sums, 5);
  CHECK(step.values.at("metrics").size() == 3);
  for (const auto& [name, expected] : step.values.at("metrics").items()) {
    CAPTURE(name);
    CHECK(std::abs(scores.value(name) - expected.get<double>()) < kPixelClose);
  }
  std::vector<double> counts, iou, accuracy, dice;
  for (const pixels::ClassPixels& one : pixels::class_pixels(sums)) {
    counts.push_back(static_cast<double>(one.pixels));
    iou.push_back(one.iou);
    accuracy.push_back(one.accuracy);
    dice.push_back(one.dice);
  }
  const json& classes = step.values.at("classes");
  check_near(counts, classes.at("pixels"));
  check_near(iou, classes.at("iou"));
  check_near(accuracy, classes.at("accuracy"));
  check_near(dice, classes.at("dice"));
}

TEST_CASE("no metric of pixels is defined without any") {
  Accumulated sums;
  sums.set(pixels::kConfusion, std::vector<double>(9));
  for (const Score& one : MetricTallies(find("segmentation").metrics()).scores(sums, 3)) {
    CHECK_FALSE(is_defined(one.value));
  }
}

TEST_CASE("rows that do not count, and a class that is ignored, are not in the confusion matrix") {
  Step first("cross_entropy");
  const std::vector<double> one = confusion_of(first, 1);
  CHECK(std::accumulate(one.begin(), one.end(), 0.0) == 17);  // three of 20 pixels are ignored
  Step without("cross_entropy");
  without.field.ignored = 2;
  const std::vector<double> rest = confusion_of(without, 2);
  const auto whole = fixture().at("confusion").get<std::vector<double>>();
  for (std::size_t i = 0; i < rest.size(); ++i) CHECK(rest[i] == (i / 5 == 2 ? 0 : whole[i]));
}

TEST_CASE("outputs that are no logits of each pixel are refused at the last layer") {
  const auto refusal = [](const Shape& shape) {
    Step step("cross_entropy");
    step.outputs.last = step.g.add_value("other", {DType::f32, shape}, graph::Storage::data);
    try {
      find("segmentation").require_output(step.g, step.context, step.outputs);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal({3, 5, 4, 5}).empty());
  CHECK(refusal({3, 7, 4, 5}) ==
        "e.yaml:2:17: the task segmentation gives each pixel one of the 5 classes of 'drawn_shapes': expected "
        "f32[3, 5, 4, 5], the model's last layer 'conv2d1' gives f32[3, 7, 4, 5]");
  CHECK_THAT(refusal({3, 5, 2, 5}), Contains("gives f32[3, 5, 2, 5]"));
  CHECK_THAT(refusal({3, 5}), Contains("gives f32[3, 5]"));
}

TEST_CASE("weights of another number of classes are refused where they stand") {
  CHECK_THROWS_WITH(
      Step("{class_weights: [1, 2]}"),
      "e.yaml:4:8: loss.class_weights: expected 5 numbers, one for each class of 'drawn_shapes', found 2");
}

TEST_CASE("a report has figures of each class, the matrix, and the worst rows as pictures") {
  Dataset set;
  set.fields.target() = data::map_field({"a", "b", "c"}, 2, 3);
  set.test.samples = {DType::u8, {3, 3, 2, 3}};
  set.test.values.resize(set.test.samples.bytes());
  FieldValues& maps = set.test.fields["map"];
  maps.type = {DType::u8, {3, 2, 3}};
  for (const int id : {0, 0, 1, 1, 2, 255, 0, 1, 2, 0, 1, 2, 2, 2, 2, 2, 2, 2}) maps.values.push_back(std::byte(id));
  const auto report = find("segmentation").make_report({.dataset = set, .worst = 2, .sample = [&](int64_t row) {
                                                          return sample_of(set.test, row);
                                                        }});
  const std::vector<float> predicted{0, 0, 1, 1, 1, 1, 0, 1, 2, 0, 1, 2, 2, 2, 2, 2, 2, 0}, losses{1, 0.25F, 3};
  report->add({.dataset = set, .first = 0, .scores = predicted, .predictions = predicted, .losses = losses});
  Accumulated sums;
  sums.set(pixels::kConfusion, {4, 0, 0, 0, 4, 0, 1, 1, 7});
  ClassEvalReport found;
  report->finish(sums, found);
  REQUIRE(found.outputs.size() == 3);
  CHECK(found.outputs[2].name == "c");
  CHECK(found.outputs[2].rows == 9);
  CHECK(found.outputs[2].scores.value("iou") == Approx(7.0 / 9));
  CHECK(found.outputs[0].scores.value("accuracy") == 1);
  CHECK(found.outputs[1].scores.value("dice") == Approx(8.0 / 9));
  CHECK(found.confusion.at(2, 0) == 1);
  CHECK(found.confusion.row_sum(2) == 9);
  REQUIRE(found.worst_pictures.size() == 2);
  CHECK(found.worst_pictures[0].row == 2);
  CHECK(found.worst_pictures[1].row == 0);
  // Three pictures of 3 by 2 pixels, each magnified, with a gap between them.
  const std::string& png = found.worst_pictures[0].picture;
  const data::Image sheet =
      data::decode_image(std::span(reinterpret_cast<const uint8_t*>(png.data()), png.size()), "worst.png");
  CHECK(sheet.width == 3 * 3 * 53 + 8);
  CHECK(sheet.height == 2 * 53);
}
