// Augmented batches: in training only, the same on every way to them, and useful for the training.
#include <gpunn/augmentation.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "catch.hpp"
#include "program/mixup.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

const Override kShifts{"augmentation", "{crop: [2, 1], flip: 0.5}"};
const Override kEverything{"augmentation",
                           "{crop: 1, rotate: 10, scale: [0.9, 1.1], brightness: 0.2, contrast: 0.2, saturation: 0.2, "
                           "erase: 6, erase_share: 0.5, mixup: 0.4, cutmix: 0.7}"};
const Override kOnHost{"augmentation", "{resized_crop: [0.3, 1], rand_augment: 2, cutmix: 1}"};

std::vector<std::vector<std::byte>> end_of(const RunResult& run) {
  return state_bytes(storage::load_checkpoint(run.run / "last.h5"));
}

int ops_named(const graph::Graph& program, const std::string& start) {
  int count = 0;
  for (const graph::Node& node : program.nodes()) count += node.name.starts_with(start) ? 1 : 0;
  return count;
}

std::string error_of(const std::string& text) {
  try {
    const training::Session session = training::Session::open(parse_experiment(text, "e.yaml"));
  } catch (const ConfigError& error) {
    return error.diagnostics().at(0).text();
  }
  return "";
}

std::vector<int32_t> first_of(std::vector<int32_t> labels, std::size_t count) {
  labels.resize(count);
  return labels;
}

}  // namespace

TEST_CASE("augmentation is in the training step and in no other") {
  const TemporaryFolder folder;
  training::Session plain = training::Session::open(small_lenet(folder.path()));
  training::Session augmented = training::Session::open(small_lenet(folder.path(), {kShifts}));
  CHECK(ops_named(plain.training().graph, "augment") == 0);
  CHECK(ops_named(augmented.training().graph, "augment") == 1);
  CHECK(ops_named(augmented.evaluation().graph, "augment") == 0);
  training::Session everything = training::Session::open(small_lenet(folder.path(), {kEverything}));
  CHECK(ops_named(everything.training().graph, "augment") == 22);
}

TEST_CASE("an augmentation that does nothing leaves a training's bits as they are") {
  const TemporaryFolder folder;
  const auto trained = [&](const Overrides& more) { return end_of(train(small_lenet(folder.path(), more))); };
  const auto plain = trained({});
  CHECK(trained({{"augmentation", "{crop: 0, flip: 0}"}}) == plain);
  CHECK(trained({{"augmentation", "{translate: [0, 0]}"}}) == plain);
  CHECK(trained({{"augmentation", "{rotate: 0, scale: [1, 1], contrast: 0, erase: 5, erase_share: 0, mixup: 0}"}}) ==
        plain);
  CHECK(trained({kShifts}) != plain);
}

TEST_CASE("an augmented run is the same resident, streamed, interrupted and on any number of threads") {
  const TemporaryFolder folder;
  const Override augmentation = GENERATE(kShifts, kEverything, kOnHost);
  const Overrides common{augmentation, {"training.log_every_steps", "1"}, {"training.epochs", "2"}};
  const auto experiment = [&](const Overrides& more) { return small_lenet(folder.path(), with(common, more)); };
  const auto straight = end_of(train(experiment({})));
  CHECK(end_of(train(experiment({{"data.residency", "stream"}}))) == straight);
  CHECK(end_of(train(experiment({{"training.threads", "3"}}))) == straight);
  StopAfter stop(13);  // in the second epoch of ten steps
  const RunResult part = train(experiment({}), {.listener = &stop, .stop = &stop.stop, .run_folder = {}});
  REQUIRE(part.interrupted);
  CHECK(end_of(resume(part.run, {})) == straight);
  CHECK(end_of(train(experiment({{"training.seed", "2"}}))) != straight);
}

TEST_CASE("what lies outside an image is what a black pixel is normalised to") {
  const TemporaryFolder folder;
  training::Session session = training::Session::open(small_lenet(folder.path(), {kShifts}));
  const graph::Graph& program = session.training().graph;
  std::vector<std::string> shifts, borders;
  for (const graph::Node& node : program.nodes()) {
    if (node.op == GPUNN_OP_GATHER_NORMALIZE) shifts.push_back(program.value(node.inputs.at(3)).name);
    if (node.op == GPUNN_OP_RANDOM_SHIFT) borders.push_back(program.value(node.inputs.at(2)).name);
  }
  REQUIRE(shifts.size() == 1);
  CHECK(borders == shifts);
}

TEST_CASE("augmented samples are the data set's where nothing is done, and black outside an image") {
  const TemporaryFolder folder;
  const Overrides in_order{{"data.shuffle", "false"}, {"augmentation", "{crop: 0}"}};
  const Dataset set = load_dataset(small_lenet(folder.path()).data);
  const Dataset plain = augmented_samples(small_lenet(folder.path(), in_order), 100);
  REQUIRE(plain.train.rows() == 128);  // two batches
  CHECK(std::equal(plain.train.values.begin(), plain.train.values.end(), set.train.values.begin()));
  CHECK(labels_of(plain.train) == first_of(labels_of(set.train), labels_of(plain.train).size()));
  CHECK(augmented_samples(small_lenet(folder.path(), in_order), 1'000'000).train.rows() == 640);

  // Two rows and no columns: each image is in the result at one of five heights, with black above or below.
  const Dataset moved = augmented_samples(
      small_lenet(folder.path(), {{"data.shuffle", "false"}, {"augmentation", "{crop: [2, 0]}"}}), 64);
  std::vector<int> heights(5, 0);
  for (std::ptrdiff_t n = 0; n < 64; ++n) {
    std::array<std::byte, 28 * 28 + 4 * 28> padded{};  // two rows of black on either side
    std::copy_n(set.train.values.begin() + n * 784, 784, padded.begin() + 56);
    int found = 0;
    for (std::ptrdiff_t rows = 0; rows < 5; ++rows) {
      const bool same = std::equal(padded.begin() + rows * 28, padded.begin() + rows * 28 + 784,
                                   moved.train.values.begin() + n * 784);
      found += same ? 1 : 0;
      heights[static_cast<std::size_t>(rows)] += same ? 1 : 0;
    }
    REQUIRE(found >= 1);
  }
  for (const int height : heights) CHECK(height > 0);
}

TEST_CASE("the parts of an accumulated step are augmented as the one large batch is") {
  const TemporaryFolder folder;
  const auto samples = [&](const Overrides& more) {
    return augmented_samples(small_lenet(folder.path(), with({kEverything}, more)), 200).train;
  };
  const Split whole = samples({{"data.batch_size", "64"}});
  const Split parts = samples({{"data.batch_size", "32"}, {"training.accumulate", "2"}});
  CHECK(whole.rows() == 256);
  CHECK(labels_of(parts) == labels_of(whole));
  CHECK(parts.values == whole.values);
}

TEST_CASE("augmentation is refused where the data has no images, or nothing would be left of them") {
  const std::string points = "model: {layers: [linear: {units: 2}]}\ndata: {dataset: points}\nbackend: cpu\n";
  CHECK_THAT(error_of(points + "augmentation: {flip: 0.5}\n"),
             Contains("e.yaml:4:1: augmentation is for images") && Contains("'points'") && Contains("leave"));
  const std::string digits =
      "model: {layers: [flatten, linear: {units: 10}]}\n"
      "data: {dataset: digits, synthetic_train: 200, synthetic_test: 100}\nbackend: cpu\n";
  CHECK_THAT(error_of(digits + "augmentation: {crop: [2, 28]}\n"),
             Contains("e.yaml:4:1: augmentation.crop: 2 x 28 pixels") && Contains("28 x 28"));
  CHECK(error_of(digits + "augmentation: {crop: [2, 27]}\n").empty());
  CHECK(error_of(points + "augmentation: {flip: 0}\n").empty());
}

TEST_CASE("CutMix puts a rectangle of another image into each, and its targets go by the area") {
  const TemporaryFolder folder;
  const Experiment experiment = small_lenet(
      folder.path(), {{"augmentation", "{cutmix: 1}"}, {"data.shuffle", "false"}, {"data.batch_size", "8"}});
  const Dataset plain = load_dataset(experiment.data);
  const Dataset mixed = augmented_samples(experiment, 80);
  REQUIRE(mixed.train.rows() == 80);
  const training::MixTables tables = training::mix_tables(0, 1, 28, 28, experiment.seed, 10);
  int64_t cut = 0, wrong = 0;
  for (int64_t i = 0; i < 80 * 28 * 28; ++i) {
    const int64_t row = i / 784, y = i / 28 % 28, x = i % 28;
    const auto step = static_cast<std::size_t>(row / 8);
    const bool inside = static_cast<float>(y) >= tables.top[step] && static_cast<float>(y) < tables.bottom[step] &&
                        static_cast<float>(x) >= tables.left[step] && static_cast<float>(x) < tables.right[step];
    const int64_t from = inside ? row / 8 * 8 + 7 - row % 8 : row;
    cut += inside;
    wrong += mixed.train.values[static_cast<std::size_t>(i)] !=
             plain.train.values[static_cast<std::size_t>(from * 784 + i % 784)];
  }
  CHECK(wrong == 0);
  CHECK(cut > 0);
  double share = 0;
  for (const float one : tables.targets) share += 1 - static_cast<double>(one);
  CHECK(static_cast<double>(cut) / (8 * 784) == Approx(share).epsilon(1e-5));

  // Of many steps: with mixup too, each has its half.
  const training::MixTables both = training::mix_tables(0.4, 1, 28, 28, 3, 4000);
  const auto cuts = std::ranges::count(both.pixels, 1.0F);
  CHECK(cuts > 1850);
  CHECK(cuts < 2150);
  for (std::size_t i = 0; i < 4000; ++i) CHECK((both.targets[i] >= 0 && both.targets[i] <= 1));
}

TEST_CASE("samples that are varied on the host can be shown, and data that can't be varied is refused") {
  const TemporaryFolder folder;
  const Dataset plain = augmented_samples(small_lenet(folder.path()), 64);
  const Dataset varied =
      augmented_samples(small_lenet(folder.path(), {{"augmentation", "{trivial_augment: true}"}}), 64);
  CHECK(labels_of(varied.train) == labels_of(plain.train));
  CHECK(varied.train.values != plain.train.values);
  const std::string points = "model: {layers: [linear: {units: 2}]}\ndata: {dataset: points}\nbackend: cpu\n";
  CHECK(error_of(points + "augmentation: {rand_augment: 1}\n").find("images of bytes") != std::string::npos);
  CHECK(error_of(points + "augmentation: {cutmix: 1}\n").find("augmentation.cutmix is for images") !=
        std::string::npos);
}

TEST_CASE("the shares of mixup are of Beta(alpha, alpha), and of the step alone") {
  for (const double alpha : {0.01, 0.2, 1.0, 4.0}) {
    constexpr int64_t kSteps = 40000;
    const std::vector<float> shares = training::mixup_shares(alpha, 7, kSteps);
    double sum = 0, squares = 0, below = 0;
    for (const float share : shares) {
      REQUIRE(share >= 0);
      REQUIRE(share <= 1);
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
      below += share < 0.1F ? 1 : 0;
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    INFO("alpha " << alpha);
    CHECK(std::abs(sum / kSteps - 0.5) < 5 * std::sqrt(variance / kSteps));
    CHECK(std::abs(squares / kSteps - variance) < 0.004);
    if (alpha == 1) CHECK(std::abs(below / kSteps - 0.1) < 0.0075);  // uniform
    if (alpha == 0.01) CHECK(below / kSteps > 0.48);                 // nearly one or the other
    const std::vector<float> few = training::mixup_shares(alpha, 7, 10);
    CHECK(std::equal(few.begin(), few.end(), shares.begin()));
    CHECK(training::mixup_shares(alpha, 8, 10) != few);
  }
}

TEST_CASE("mixup trains on mixed targets, of images or not, and evaluates on plain ones") {
  const TemporaryFolder folder;
  const Override mixup{"augmentation", "{mixup: 0.4}"};
  training::Session session = training::Session::open(small_mlp(folder.path(), {mixup}));
  int soft = 0;
  for (const graph::Node& node : session.training().graph.nodes()) soft += node.op == GPUNN_OP_SOFT_CROSS_ENTROPY;
  CHECK(soft == 1);
  for (const graph::Node& node : session.evaluation().graph.nodes()) CHECK(node.op != GPUNN_OP_MIX_ROWS);

  const std::string points =
      "model: {layers: [linear: {units: 2}]}\n"
      "data: {dataset: points, batch_size: 32}\noptimizer: {learning_rate: 0.5}\n"
      "training: {epochs: 2}\nbackend: cpu\naugmentation: {mixup: 1}\nruns: " +
      folder.path().string() + "\n";
  for (const char* loss : {"cross_entropy", "mean_squared_error"}) {
    const RunResult run = train(parse_experiment(points, "e.yaml", {{"loss", loss}}));
    CHECK(run.epochs.size() == 2);
    CHECK(std::isfinite(run.final_evaluation.loss));
  }
}

// A run for more epochs has a longer table of shares, which begins alike.
TEST_CASE("a finished run with mixup goes on as a longer one would have") {
  const TemporaryFolder folder;
  const auto experiment = [&](const char* epochs) {
    return small_mlp(folder.path(), {{"augmentation", "{mixup: 0.4}"}, {"training.epochs", epochs}});
  };
  const RunResult longer = train(experiment("2"));
  const RunResult first = train(experiment("1"));
  resume(first.run, {{"training.epochs", "2"}});
  CHECK(end_of(first) == end_of(longer));
}

TEST_CASE("LeNet learns the drawn digits while they are moved about") {
  const TemporaryFolder folder;
  const RunResult run = train(small_lenet(
      folder.path(), {{"augmentation", "{translate: 2}"}, {"data.synthetic_train", "2560"}, {"training.epochs", "4"}}));
  CHECK(run.final_evaluation.scores.value("accuracy") > 0.85);
}
