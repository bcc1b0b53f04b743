// Detection, from images with boxes to the report.
#include <gpunn/evaluation.hpp>
#include <gpunn/model.hpp>

#include <cmath>

#include "catch.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

// A small pyramid on digits of up to 64x64.
Experiment small_detector(const std::filesystem::path& runs, const Overrides& more = {}) {
  const std::string models = (std::filesystem::path(GPUNN_SOURCE_DIR) / "models").string();
  return parse_experiment(
      "name: boxes\ntask: detection\nloss: focal\nmodel: {file: " + models +
          "/fcos.yaml, parameters: {classes: 10, base: 8, blocks1: 1, blocks2: 1, blocks3: 1, blocks4: 1, width: 16, "
          "depth: 1}}\ndata: {dataset: drawn_digits, image_size: 64, channels: 1, digits: 2, flip: 0, most_boxes: 8, "
          "batch_size: 16, synthetic_train: 192, synthetic_test: 32}\noptimizer: {type: adam, learning_rate: "
          "0.003}\ntraining: {epochs: 3}\nbackend: cpu\nruns: " +
          runs.string() + "\n",
      "boxes.yaml", more);
}

// A few convolutions with anchors on two maps, on digits of 64x64.
Experiment small_ssd(const std::filesystem::path& runs, const Overrides& more = {}) {
  return parse_experiment(
      R"(name: anchors
task: detection
loss: multibox
model:
  parameters: {background: true}
  blocks:
    halved:
      parameters: {filters: }
      layers:
        - conv2d: {name: conv, filters: $filters, kernel: 3, stride: 2, padding: 1, bias: false}
        - batch_norm: {name: bn}
        - relu
  layers:
    - halved: {filters: 8}
    - halved: {filters: 16}
    - halved: {name: map1, filters: 32}
    - halved: {name: map2, filters: 32}
    - l2_norm: {name: scaled, from: map1, scale: 10}
    - ssd_head: {name: boxes, from: [scaled, map2], classes: 10, strides: [8, 16], sizes: [20, 32, 48],
                 ratios: [2, 2], background: $background}
data: {dataset: drawn_digits, image_size: 64, channels: 1, digits: 2, flip: 0, most_boxes: 8, batch_size: 16,
       synthetic_train: 192, synthetic_test: 32}
optimizer: {type: adam, learning_rate: 0.005}
training: {epochs: 4}
backend: cpu
runs: )" + runs.string() +
          "\n",
      "anchors.yaml", more);
}

}  // namespace

TEST_CASE("a detector learns: its loss falls, and a report has its figures, classes and worst images") {
  const TemporaryFolder folder;
  const RunResult run = train(small_detector(folder.path()));
  REQUIRE(run.epochs.size() == 3);
  CHECK(run.monitor.name == "map_50");
  CHECK(run.epochs.back().train_loss < 0.8 * run.epochs.front().train_loss);
  CHECK(run.epochs.back().evaluation.loss < run.epochs.front().evaluation.loss);
  const double map = run.final_evaluation.scores.value("map_50");
  CHECK(map >= 0);
  CHECK(map <= 1);

  const ClassEvalReport report = evaluate_classes({.path = run.run, .overrides = {}}, 2);
  REQUIRE(report.detection);
  CHECK(report.detection->classes.size() == 10);
  CHECK(report.confusion.counts.size() == 121);
  CHECK(report.confusion.names.back() == "nothing");
  REQUIRE(report.worst_pictures.size() == 2);
  CHECK(report.worst_pictures[0].loss >= report.worst_pictures[1].loss);
  CHECK(report.worst_pictures[0].picture.starts_with("\x89PNG"));
  CHECK(report.total.scores.value("map_50") == report.detection->figures[0].second);

  const std::vector<Prediction> found = predict({.path = run.run, .overrides = {}}, {.inputs = {}, .rows = {0, 1}});
  REQUIRE(found.size() == 2);
  for (const DetectedBox& box : found[0].boxes) CHECK(box.right > box.left);
}

TEST_CASE("a detector with anchors learns, by the hardest of them or by the focal loss") {
  const TemporaryFolder folder;
  const auto learns = [&](const Overrides& more) {
    const RunResult run = train(small_ssd(folder.path(), more));
    REQUIRE(run.epochs.size() == 4);
    CHECK(run.epochs.back().train_loss < 0.8 * run.epochs.front().train_loss);
    CHECK(run.epochs.back().evaluation.loss < run.epochs.front().evaluation.loss);
    CHECK(run.final_evaluation.scores.value("map_50") > 0.1);
    return run;
  };
  const RunResult run = learns({});
  learns({{"loss", "focal"}, {"model.parameters.background", "false"}});
  const std::vector<Prediction> found = predict({.path = run.run, .overrides = {}}, {.inputs = {}, .rows = {0}});
  REQUIRE(!found[0].boxes.empty());
  for (const DetectedBox& box : found[0].boxes) CHECK(box.right > box.left);
}

TEST_CASE("a resumed training of a detector reaches the figures of an uninterrupted one") {
  const TemporaryFolder folder;
  const auto [straight, resumed] =
      straight_and_resumed(small_detector(folder.path(), {{"training.epochs", "2"}}), folder.path(), 5);
  CHECK(resumed.final_evaluation.loss == straight.final_evaluation.loss);
  CHECK(resumed.final_evaluation.scores.value("map_coco") == straight.final_evaluation.scores.value("map_coco"));
}

TEST_CASE("models that do not fit boxes are refused with what to do") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(train(small_detector(folder.path(), {{"model.parameters.classes", "5"}})),
                    Contains("has 10 classes") && Contains("model.parameters.classes to at least 10"));
  const Experiment linear = parse_experiment(
      "task: detection\nloss: focal\nmodel: {layers: [flatten, linear: {units: 5}]}\ndata: {dataset: drawn_digits, "
      "synthetic_train: 64, synthetic_test: 8, batch_size: 16}\noptimizer: {type: sgd}\nbackend: cpu\nruns: " +
          folder.path().string() + "\n",
      "linear.yaml");
  CHECK_THROWS_WITH(train(linear), Contains("ends in fcos_head or ssd_head") && Contains("is linear"));
  const Experiment found = parse_experiment(
      "task: detection\nloss: focal\nmodel:\n  layers:\n    - flatten: {name: x}\n    - linear: {units: 12}\n"
      "    - reshape: {name: boxes, shape: [3, 4]}\n    - linear: {from: x, units: 30}\n"
      "    - reshape: {name: scores, shape: [3, 10]}\n    - non_maximum_suppression: {from: [boxes, scores]}\n"
      "data: {dataset: drawn_digits, synthetic_train: 64, synthetic_test: 8, batch_size: 16}\n"
      "optimizer: {type: sgd}\nbackend: cpu\nruns: " +
          folder.path().string() + "\n",
      "found.yaml");
  CHECK_THROWS_WITH(train(found), Contains("it has no loss"));
}
