// Photographs and drawn images as pairs of inputs and targets: patches for training, whole images for evaluation.
#include <gpunn/data.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/files.hpp"
#include "data/images/bicubic.hpp"
#include "data/images/image.hpp"
#include "fields/values.hpp"

using namespace gpunn;

namespace {

namespace fs = std::filesystem;

PhotographSet photographs(int64_t scale, int64_t patch_size) {
  PhotographSet settings;
  settings.scale = scale;
  settings.patch_size = patch_size;
  settings.patches = 80;
  return settings;
}

DataConfig drawn_config(const PhotographSet& settings) {
  DataConfig config;
  config.task = "super_resolution";
  config.learnt = "image";
  config.dataset = "drawn_photographs";
  config.kind = settings;
  config.batch_size = 8;
  config.synthetic_train = 4;
  config.synthetic_test = 2;
  return config;
}

struct PatchBatch {
  std::vector<float> inputs, targets;
  bool operator==(const PatchBatch&) const = default;
};

PatchBatch batch_of(const Dataset& set, int64_t step, std::size_t rows) {
  const Shape& shape = set.train.samples.shape;
  PatchBatch batch{std::vector<float>(rows * static_cast<std::size_t>(shape[1] * shape[2] * shape[3])),
                   std::vector<float>(rows * static_cast<std::size_t>(set.fields.target().count()))};
  const BatchRoom room{std::as_writable_bytes(std::span(batch.inputs)),
                       {std::as_writable_bytes(std::span(batch.targets))}};
  CHECK(set.batches->read(step, room) == static_cast<int64_t>(rows));
  return batch;
}

}  // namespace

TEST_CASE("patches are functions of seed and step, and differ from row to row") {
  DataConfig config = drawn_config(photographs(2, 24));
  const Dataset set = load_dataset(config);
  CHECK(set.train.samples == TensorType{DType::f32, {80, 1, 12, 12}});
  CHECK(set.fields.target().count() == 24 * 24);
  const PatchBatch first = batch_of(set, 0, 8), second = batch_of(set, 1, 8);
  CHECK(first == batch_of(load_dataset(config), 0, 8));
  CHECK_FALSE(first == second);
  CHECK_FALSE(std::equal(first.inputs.begin(), first.inputs.begin() + 144, first.inputs.begin() + 144));
  config.order_seed = 2;
  CHECK_FALSE(first == batch_of(load_dataset(config), 0, 8));
  CHECK(set.batches->digest() == load_dataset(config).batches->digest());
  config.seed = 2;
  CHECK_FALSE(set.batches->digest() == load_dataset(config).batches->digest());
}

TEST_CASE("a patch that is shrunk is what the model gets of it, turned or not") {
  for (const bool turns : {false, true}) {
    PhotographSet settings = photographs(3, 48);
    settings.turns = turns;
    const Dataset set = load_dataset(drawn_config(settings));
    const PatchBatch batch = batch_of(set, 3, 8);
    for (std::size_t row = 0; row < 8; ++row) {
      data::Planes target{1, 48, 48};
      target.values.assign(batch.targets.begin() + static_cast<std::ptrdiff_t>(row * 48 * 48),
                           batch.targets.begin() + static_cast<std::ptrdiff_t>((row + 1) * 48 * 48));
      const data::Planes small = data::resize_bicubic(target, 1.0 / 3);
      // Beyond the reach of the border, where the image goes on and the patch does not.
      for (std::size_t y = 3; y < 13; ++y) {
        for (std::size_t x = 3; x < 13; ++x) {
          CHECK(static_cast<double>(batch.inputs[row * 256 + y * 16 + x]) ==
                Approx(static_cast<double>(small.values[y * 16 + x])).margin(1e-5));
        }
      }
    }
  }
}

TEST_CASE("enlarged inputs have the size of their targets, colours three planes, and test images sizes of their own") {
  PhotographSet settings = photographs(4, 32);
  settings.colours = ColourPlanes::rgb;
  settings.input = ModelInput::enlarged;
  const Dataset set = load_dataset(drawn_config(settings));
  CHECK(set.train.samples.shape == Shape{80, 3, 32, 32});
  REQUIRE(set.test.singles.size() == 2);
  CHECK(set.test.rows() == 2);
  for (const Split& single : set.test.singles) {
    CHECK(single.samples == single.fields.at(kTargetField).type);
    CHECK(single.samples.shape[2] % 4 == 0);
    CHECK(single.values.size() == single.samples.bytes());
  }
  CHECK(set.fields.target().scale == 4);
  CHECK(set.fields.input().mean.size() == 3);
}

TEST_CASE("own photographs are read from folders, with small images of their own or without") {
  const test::TemporaryFolder folder;
  const auto write = [&](const fs::path& file, int64_t height, int64_t width) {
    data::Image image{height, width, 3, {}};
    for (int64_t i = 0; i < height * width * 3; ++i) image.values.push_back(static_cast<uint8_t>(i * 7 % 251));
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << data::encode_png(image);
  };
  write(folder.path() / "train/a.png", 31, 40);
  write(folder.path() / "train/more/b.png", 26, 26);
  write(folder.path() / "train/tiny.png", 9, 40);
  write(folder.path() / "test/c.png", 21, 33);
  DataConfig config = drawn_config(photographs(2, 20));
  config.dataset = "photograph_folder";
  config.path = folder.path() / "train";
  config.test_path = folder.path() / "test";
  const Dataset set = load_dataset(config);
  REQUIRE(set.notes.size() == 1);
  CHECK_THAT(set.notes.front(), Contains("1 of 3 training images are smaller than a patch"));
  CHECK(set.test.singles.front().samples.shape == Shape{1, 1, 10, 16});
  CHECK(set.test.singles.front().name == "c");

  auto& settings = std::get<PhotographSet>(config.kind);
  settings.test_small_path = folder.path() / "small";
  write(folder.path() / "small/c.png", 10, 16);
  CHECK(load_dataset(config).test.singles.front().samples.shape == Shape{1, 1, 10, 16});
  write(folder.path() / "small/c.png", 11, 16);
  CHECK_THROWS_WITH(load_dataset(config), Contains("expected 2 times fewer a side"));
  settings.test_small_path.clear();
  settings.patch_size = 40;
  CHECK_THROWS_WITH(load_dataset(config), Contains("no training image holds a patch of 40"));
}

TEST_CASE("photographs that are decoded anew give patches of all of them, the same ones from any step on") {
  const test::TemporaryFolder folder;
  // Each is a step of its own darker than the one before, so that a patch tells which one it is of.
  constexpr int kImages = 3;
  for (int i = 0; i < kImages; ++i) {
    data::Image image{40, 36, 1, std::vector<uint8_t>(40 * 36, static_cast<uint8_t>(200 - 40 * i))};
    for (std::size_t at = 0; at < image.values.size(); at += 7) ++image.values[at];
    std::ofstream(folder.path() / ("p" + std::to_string(i) + ".png"), std::ios::binary) << data::encode_png(image);
  }
  fs::create_directories(folder.path() / "test");
  fs::copy(folder.path() / "p0.png", folder.path() / "test");
  fs::create_directories(folder.path() / "train");
  for (int i = 0; i < kImages; ++i)
    fs::rename(folder.path() / ("p" + std::to_string(i) + ".png"),
               folder.path() / "train" / ("p" + std::to_string(i) + ".png"));
  DataConfig config = drawn_config(photographs(2, 16));
  config.dataset = "photograph_folder";
  config.path = folder.path() / "train";
  config.test_path = folder.path() / "test";
  auto& settings = std::get<PhotographSet>(config.kind);
  settings.also_scaled = {0.8, 0.3};
  const Dataset whole = load_dataset(config);
  settings.decode = Decoding::each_epoch;
  const Dataset streamed = load_dataset(config);
  CHECK(streamed.train.samples == whole.train.samples);
  CHECK_THAT(streamed.notes.back(), Contains("are in memory at a time"));
  // Of the factor 0.3 none is as large as a patch.
  CHECK_THAT(whole.notes.front(), Contains("3 of 9 training images are smaller"));
  CHECK_THAT(streamed.notes.front(), Contains("3 of 9 training images are smaller"));

  // A window has 256 patches of each of up to six pairs: these steps lie in six of them.
  const std::vector<int64_t> steps = {0, 1, 100, 191, 192, 300, 500, 700, 900, 1100};
  std::vector<PatchBatch> batches;
  std::set<int> shades;
  for (const int64_t step : steps) {
    batches.push_back(batch_of(streamed, step, 8));
    for (const float value : batches.back().targets) shades.insert(static_cast<int>(std::lround(value * 255)) / 40);
  }
  CHECK(shades.size() == kImages);
  const Dataset resumed = load_dataset(config);
  for (const std::size_t at : {std::size_t{4}, std::size_t{5}}) CHECK(batch_of(resumed, steps[at], 8) == batches[at]);
  CHECK(resumed.batches->digest() == streamed.batches->digest());
  // What the model gets belongs to the target.
  for (std::size_t row = 0; row < 8; ++row) {
    CHECK(std::abs(batches[2].inputs[row * 64 + 27] - batches[2].targets[row * 256 + 100]) < 0.03F);
  }

  std::ofstream(folder.path() / "train/p0.png", std::ios::binary)
      << data::encode_png({50, 50, 1, std::vector<uint8_t>(2500)});
  CHECK_FALSE(load_dataset(config).batches->digest() == streamed.batches->digest());
  std::vector<std::byte> inputs(64 * sizeof(float)), targets(256 * sizeof(float));
  const auto read_on = [&] {
    for (int64_t step = 5000; step < 60000; step += 1536) streamed.batches->read(step, {inputs, {targets}});
  };
  CHECK_THROWS_WITH(read_on(), Contains("has changed since"));
  settings.patch_size = 80;
  CHECK_THROWS_WITH(load_dataset(config), Contains("no training image holds a patch of 80"));
}
