// Segmentation, from drawn shapes to the report.
#include <gpunn/evaluation.hpp>
#include <gpunn/model.hpp>

#include <algorithm>
#include <numeric>

#include "catch.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

// A few convolutions on images of 24x32, whose borders move in and whose last batches are not full.
Experiment small_net(const std::filesystem::path& runs, const Overrides& more = {}) {
  return parse_experiment(
      "name: shapes\ntask: segmentation\nloss: {type: sum, cross_entropy: 1, dice: 0.5, focal: 0.25, class_weights: "
      "[0.5, 1, 1, 1, 1], label_smoothing: 0.05}\n"
      "model:\n  layers:\n"
      "    - conv2d: {filters: 12, kernel: 5, padding: 2, bias: false}\n    - batch_norm\n    - relu: {name: fine}\n"
      "    - max_pool: {window: 2}\n"
      "    - conv2d: {filters: 24, kernel: 5, padding: 2, bias: false}\n    - batch_norm\n    - relu: {name: coarse}\n"
      "    - upsample: {name: up, factor: 2, mode: bilinear}\n"
      "    - concat: {from: [up, fine]}\n"
      "    - conv2d: {filters: 16, kernel: 3, padding: 1}\n    - relu\n"
      "    - conv2d: {name: output, filters: 5, kernel: 1}\n"
      "data: {dataset: drawn_shapes, image_size: [24, 32], synthetic_train: 60, synthetic_test: 21, batch_size: 8, "
      "eval_batch_size: 4}\n"
      "augmentation: {flip: 0.5, zoom: [1, 2], rotate: 20, crop: 3}\n"
      "optimizer: {type: adam, learning_rate: 0.01}\ntraining: {epochs: 3}\nbackend: cpu\nruns: " +
          runs.string() + "\n",
      "shapes.yaml", more);
}

std::vector<double> figures_of(const RunResult& run) {
  std::vector<double> figures;
  for (const EpochReport& epoch : run.epochs) {
    figures.push_back(epoch.train_loss);
    figures.push_back(epoch.evaluation.loss);
    for (const Scores* scores : {&epoch.train_scores, &epoch.evaluation.scores}) {
      for (const Score& one : *scores) figures.push_back(one.value);
    }
  }
  return figures;
}

}  // namespace

TEST_CASE("a segmentation that is stopped and resumed gives the straight run's bits, with augmentation") {
  const TemporaryFolder folder;
  const Experiment experiment = small_net(folder.path(), {{"training.log_every_steps", "1"}, {"training.ema", "0.9"}});
  const auto [straight, part] = straight_and_resumed(experiment, folder.path(), 11);  // in the second of three epochs
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  CHECK(same_state(straight.run / "best.h5", part.run / "best.h5"));
  CHECK(part.final_evaluation.loss == straight.final_evaluation.loss);
  CHECK(straight.monitor.name == "miou");
}

TEST_CASE("streamed label maps train to the bits of resident ones") {
  const TemporaryFolder folder;
  const RunResult resident = train(small_net(folder.path(), {{"data.residency", "device"}}));
  const RunResult streamed = train(small_net(folder.path(), {{"data.residency", "stream"}}));
  CHECK(figures_of(resident) == figures_of(streamed));
  CHECK(figures_of(resident).size() == 3 * (2 + 2 * 3));
  CHECK(state_bytes(storage::load_checkpoint(resident.run / "last.h5")) ==
        state_bytes(storage::load_checkpoint(streamed.run / "last.h5")));
}

TEST_CASE("parts of a batch count the same pixels as the whole") {
  const TemporaryFolder folder;
  const auto confusion = [&](const char* batch, const char* parts) {
    training::Session session =
        training::Session::open(small_net(folder.path(), {{"data.batch_size", batch},
                                                          {"training.accumulate", parts},
                                                          {"augmentation", "{}"},
                                                          {"data.drop_last", "true"},
                                                          {"optimizer.learning_rate", "1e-30"}}));
    session.train_steps(7);
    const tasks::Accumulated sums = session.sums();
    const std::span<const double> counts = sums.of("confusion");
    return std::accumulate(counts.begin(), counts.end(), 0.0);
  };
  CHECK(confusion("8", "1") == confusion("4", "2"));
  CHECK(confusion("8", "1") > 7 * 8 * 24 * 32 / 2);
}

TEST_CASE("figures of classes are those of the confusion matrix, and predictions are what it counts") {
  const TemporaryFolder folder;
  const RunResult run = train(small_net(folder.path()));
  const ClassEvalReport report = evaluate_classes({.path = run.run / "last.h5", .overrides = {}}, 2);
  CHECK(report.total.scores.value("miou") == run.final_evaluation.scores.value("miou"));
  REQUIRE(report.outputs.size() == 5);
  CHECK(report.outputs[0].name == "background");
  CHECK(report.counted == "pixels");
  DefinedMean mean;
  int64_t pixels = 0;
  for (const OutputReport& one : report.outputs) {
    mean.add(one.scores.value("iou"));
    pixels += *one.rows;
  }
  CHECK(mean.value() == report.total.scores.value("miou"));
  CHECK(std::accumulate(report.confusion.counts.begin(), report.confusion.counts.end(), int64_t{0}) == pixels);
  REQUIRE(report.worst_pictures.size() == 2);
  CHECK(report.worst_pictures[0].loss >= report.worst_pictures[1].loss);
  CHECK(report.worst_pictures[0].picture.starts_with("\x89PNG"));

  // The same pixels, from a model that is called.
  std::vector<int64_t> rows(21);
  std::iota(rows.begin(), rows.end(), int64_t{0});
  const std::vector<Prediction> predictions =
      predict({.path = run.run / "last.h5", .overrides = {}}, {.inputs = {}, .rows = rows});
  const Dataset data = load_dataset(small_net(folder.path()).data);
  const std::span<const std::byte> truth = data.test.fields.at("map").bytes();
  std::vector<int64_t> counts(25);
  for (std::size_t row = 0; row < predictions.size(); ++row) {
    const LabelMap& map = predictions[row].map.value();
    CHECK(map.height == 24);
    CHECK(map.width == 32);
    double shares = 0;
    for (const ClassProbability& one : predictions[row].top) shares += one.probability;
    CHECK(shares == Approx(1));
    for (std::size_t i = 0; i < map.classes.size(); ++i) {
      const auto label = std::to_integer<std::size_t>(truth[row * map.classes.size() + i]);
      if (label < 5) ++counts[label * 5 + map.classes[i]];
    }
  }
  CHECK(counts == report.confusion.counts);
}

TEST_CASE("a model of other classes than its data is refused with what to set") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(
      train(load_experiment(experiment_file("unet_shapes"),
                            {{"model.parameters.classes", "7"}, {"backend", "cpu"}, {"runs", folder.path().string()}})),
      Contains("gives each pixel one of the 5 classes of 'drawn_shapes'") &&
          Contains("set model.parameters.classes to 5"));
}
