// SSD's matching, mining, loss and boxes against torchvision's, in float64.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "compiler/autodiff.hpp"
#include "config/layer_table.hpp"
#include "ops/evaluate.hpp"
#include "tasks/detection/head.hpp"

using namespace gpunn;
using nlohmann::json;
using ops::ReferenceTensor;

namespace {

constexpr int64_t kClasses = 3, kMostBoxes = 4;

// Up to what the factors in attributes are rounded by, which are floats.
void check_near(const ReferenceTensor& found, const json& expected) {
  REQUIRE(found.values.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto value = expected[i].get<double>();
    CHECK(std::abs(found.values[i] - value) < 1e-6 * (1 + std::abs(value)));
  }
}

ReferenceTensor targets_of(const json& images) {
  ReferenceTensor targets{{DType::f32, {std::ssize(images), kMostBoxes, kBoxNumbers}}, {}};
  for (const json& boxes : images) {
    for (int64_t i = 0; i < kMostBoxes; ++i) {
      const bool there = i < std::ssize(boxes);
      for (int64_t k = 0; k < kBoxNumbers; ++k) {
        const double of_none = k == 4 ? -1 : 0;
        targets.values.push_back(there ? boxes[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)].get<double>()
                                       : of_none);
      }
    }
  }
  return targets;
}

}  // namespace

TEST_CASE("SSD's loss, its gradient, boxes and scores are those of torchvision") {
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/ssd.json");
  const json fixture = json::parse(file);
  Experiment experiment = parse_experiment(
      "task: detection\nloss: multibox\nmodel: {layers: [conv2d: {name: a, filters: 1, kernel: 1}, conv2d: {name: b, "
      "filters: 1, kernel: 1}, ssd_head: {name: boxes, from: [a, b], classes: 3, strides: [8, 16], sizes: [10, 20, "
      "33], "
      "ratios: [2, 3]}]}\ndata: drawn_digits\noptimizer: {type: sgd}\n",
      "ssd.yaml");
  graph::Graph g;
  const int64_t images = 2, anchors = fixture.at("anchors");
  tasks::ModelOutputs outputs;
  outputs.layers["a"] = g.add_value("a", {DType::f32, {images, 1, 4, 4}}, graph::Storage::data);
  outputs.layers["b"] = g.add_value("b", {DType::f32, {images, 1, 2, 2}}, graph::Storage::data);
  outputs.last = g.add_value("output", {DType::f32, {images, anchors, 4 + kClasses + 1}}, graph::Storage::data);
  const ReferenceTensor targets = targets_of(fixture.at("targets"));
  const graph::ValueId wanted = g.add_value("targets", targets.type, graph::Storage::data);

  const tasks::TaskContext context{.experiment = experiment, .outputs = kClasses};
  const auto head = tasks::detection_head(g, context, outputs);
  const graph::ValueId losses = head->add_loss(g, context, outputs.last, wanted, false);
  const graph::ValueId boxes = head->add_boxes(g, outputs.last), scores = head->add_scores(g, outputs.last);
  graph::Expressions e(g, "mean");
  const graph::ValueId loss = e.mean(losses, 1U, false);
  const auto gradients = compiler::add_gradients(g, loss, std::vector{outputs.last});

  ops_test::ValueMap values;
  values[outputs.last] = {g.value(outputs.last).type, fixture.at("output").get<std::vector<double>>()};
  values[wanted] = targets;
  ops_test::evaluate(g, values);
  const auto at = [&](graph::ValueId id) { return ops_test::tensor_at(g, values, id); };
  check_near(at(loss), json::array({fixture.at("loss")}));
  check_near(at(gradients.front()), fixture.at("gradient"));
  check_near(at(boxes), fixture.at("boxes"));
  check_near(at(scores), fixture.at("scores"));
}

TEST_CASE("a detector's last layer and its loss have to go together, and it says how") {
  const auto refusal = [](const std::string& loss, const std::string& head) {
    const Experiment experiment = parse_experiment("task: detection\nloss: " + loss +
                                                       "\nmodel: {layers: [conv2d: {name: a, filters: 1, kernel: 1}, " +
                                                       head + "]}\ndata: drawn_digits\noptimizer: {type: sgd}\n",
                                                   "e.yaml");
    graph::Graph g;
    tasks::ModelOutputs outputs;
    outputs.layers["a"] = g.add_value("a", {DType::f32, {1, 1, 6, 6}}, graph::Storage::data);
    try {
      tasks::detection_head(g, {.experiment = experiment, .outputs = 10}, outputs);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string ssd = "ssd_head: {classes: 10, strides: 8, sizes: [10, 20], ratios: 2";
  CHECK_THAT(refusal("focal", ssd + "}"),
             Contains("learnt by loss: multibox, found focal") && Contains("set background: false"));
  CHECK_THAT(refusal("multibox", ssd + ", background: false}"), Contains("learnt by loss: focal, found multibox"));
  CHECK_THAT(refusal("multibox", "fcos_head: {classes: 10, strides: 8}"), Contains("loss: focal, found multibox"));
  CHECK(refusal("focal", ssd + ", background: false}").empty());
  CHECK_THROWS_WITH(
      parse_experiment("model: {layers: [ssd_head: {classes: 1, strides: [8, 16], sizes: [9, 20], ratios: "
                       "[2, 2]}]}\ndata: drawn_digits\ntask: detection\n",
                       "e.yaml"),
      Contains("sizes: expected 3 numbers"));
}
