// Label maps of whole pictures by tiles.
#include <gpunn/error.hpp>
#include <gpunn/segmentation.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/images/image.hpp"
#include "data/segmentation/label_map.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using gpunn::testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

data::Image picture_of(int64_t height, int64_t width) {
  data::Image image{.height = height, .width = width, .channels = 3, .values = {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const double wave = std::sin(0.37 * static_cast<double>(x + 5 * c)) + std::cos(0.29 * static_cast<double>(y));
        image.values.push_back(static_cast<uint8_t>(128 + 50 * wave + static_cast<double>((7 * x + 3 * y) % 13)));
      }
    }
  }
  return image;
}

fs::path write_png(const fs::path& file, const data::Image& image) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << data::encode_png(image);
  return file;
}

// A model of five classes for images of 24 by 32 pixels, trained for two steps.
fs::path trained(const fs::path& runs, const std::string& layers) {
  return train(parse_experiment("task: segmentation\nmodel: {layers: [" + layers +
                                    "]}\n"
                                    "data: {dataset: drawn_shapes, image_size: [24, 32], batch_size: 4, "
                                    "synthetic_train: 8, synthetic_test: 4}\n"
                                    "optimizer: {type: adam, learning_rate: 0.01}\n"
                                    "training: {epochs: 1}\nbackend: cpu\nruns: " +
                                    runs.string() + "\n",
                                "shapes.yaml"))
      .run;
}

// The classes of a picture that the model gets as a whole.
std::vector<uint8_t> at_once(const fs::path& run, const data::Image& picture) {
  const Model model = Model::load(run, {.image_size = {picture.height, picture.width}});
  std::vector<uint8_t> planes(picture.values.size());
  data::write_planes(picture, reinterpret_cast<std::byte*>(planes.data()));
  const Shape from{1, 3, picture.height, picture.width}, to{1, picture.height, picture.width};
  std::vector<int32_t> classes(picture.values.size() / 3);
  const std::string name = model.outputs().back().name;
  model.run({.name = {}, .dtype = DType::u8, .shape = from, .data = planes.data()},
            {.name = name, .dtype = DType::i32, .shape = to, .data = classes.data()});
  return {classes.begin(), classes.end()};
}

double share_of_equal(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  REQUIRE(a.size() == b.size());
  const auto [first, second] = std::ranges::mismatch(a, b);
  static_cast<void>(second);
  if (first == a.end()) return 1;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i] ? 1 : 0;
  return static_cast<double>(equal) / static_cast<double>(a.size());
}

std::size_t number_of_classes(std::vector<uint8_t> map) {
  std::ranges::sort(map);
  return static_cast<std::size_t>(std::unique(map.begin(), map.end()) - map.begin());
}

}  // namespace

TEST_CASE("a model that sees a pixel at a time makes the same map by tiles as at once") {
  const TemporaryFolder folder;
  const fs::path run = trained(folder.path() / "runs", "conv2d: {filters: 5, kernel: 1}");
  const Model model = Model::load(run, {.max_batch = 3});
  for (const auto& [height, width] : {std::pair{57, 83}, {24, 32}, {25, 200}, {10, 20}, {100, 7}, {1, 1}}) {
    CAPTURE(height, width);
    const data::Image picture = picture_of(height, width);
    const fs::path file = write_png(folder.path() / "a.png", picture);
    const std::vector<uint8_t> expected = at_once(run, picture);
    for (const std::optional<int64_t> overlap : {std::optional<int64_t>(), {0}, {11}}) {
      const LabelMap map = segment_image(model, file, {.overlap = overlap});
      CHECK(map.height == height);
      CHECK(map.width == width);
      CHECK(map.classes == expected);
    }
    if (height == 57) CHECK(number_of_classes(expected) > 1);
  }
  const fs::path file = write_png(folder.path() / "a.png", picture_of(57, 83));
  CHECK_THROWS_WITH(segment_image(model, file, {.overlap = 12}),
                    "the overlap: expected less than half of a side of the model's images, 24 pixels, found 12");
}

TEST_CASE("tiles that overlap by what a U-Net sees make the map of the whole picture") {
  const TemporaryFolder folder;
  const fs::path run =
      trained(folder.path() / "runs",
              "conv2d: {name: top, filters: 6, kernel: 3, padding: 1}, relu: {name: a}, max_pool: {window: 2}, "
              "conv2d: {filters: 6, kernel: 3, padding: 1}, relu: {name: b}, "
              "upsample: {name: up, from: [b, a]}, concat: {from: [up, a]}, conv2d: {filters: 5, kernel: 1}");
  const data::Image picture = picture_of(70, 90);  // even, so that all tiles pool the same pairs of pixels
  const fs::path file = write_png(folder.path() / "a.png", picture);
  const std::vector<uint8_t> expected = at_once(run, picture);
  const Model model = Model::load(run);
  CHECK(number_of_classes(expected) > 1);
  CHECK(share_of_equal(segment_image(model, file, {.overlap = 8}).classes, expected) > 0.9999);
  CHECK(share_of_equal(segment_image(model, file).classes, expected) > 0.95);
}

TEST_CASE("an evaluation at full size compares maps with their files pixel by pixel") {
  const TemporaryFolder folder;
  const fs::path data = folder.path() / "data";
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{40, 50}, {24, 32}, {90, 33}, {41, 200}};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const data::Image picture = picture_of(sizes[i].first, sizes[i].second);
    data::Image map{.height = picture.height, .width = picture.width, .channels = 1, .values = {}};
    // Of the two classes with the ids 2 and 7; a row in ten has none.
    for (int64_t p = 0; p < map.height * map.width; ++p) {
      const bool bright = picture.values[static_cast<std::size_t>(3 * p)] > 140;
      map.values.push_back(p / map.width % 10 == 9 ? 255 : bright ? 7 : 2);
    }
    const std::string part = i == 0 ? "train" : "test", name = std::to_string(i) + ".png";
    write_png(data / part / "image" / name, picture);
    write_png(data / part / "label" / name, map);
  }
  std::ofstream(data / "classes.txt") << "2 dark\n7 bright\n";
  const fs::path run = train(parse_experiment("task: segmentation\nmodel: {layers: [conv2d: {filters: 2, kernel: 1}]}\n"
                                              "data: {dataset: segmentation_folder, path: " +
                                                  data.string() +
                                                  ", images: image, maps: label, image_size: [24, 32], batch_size: 1}\n"
                                                  "optimizer: {type: adam, learning_rate: 0.1}\n"
                                                  "training: {epochs: 4}\nbackend: cpu\nruns: " +
                                                  (folder.path() / "runs").string() + "\n",
                                              "maps.yaml"))
                           .run;
  const Model model = Model::load(run);
  std::vector<int64_t> counts(4);
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    const std::string name = std::to_string(i) + ".png";
    const LabelMap found = segment_image(model, data / "test" / "image" / name);
    const data::LabelMap truth = data::read_label_map(data / "test" / "label" / name);
    REQUIRE(found.classes.size() == truth.ids.size());
    for (std::size_t p = 0; p < truth.ids.size(); ++p) {
      if (truth.ids[p] != 255) ++counts[(truth.ids[p] == 7 ? 2U : 0U) + found.classes[p]];
    }
  }
  const ClassEvalReport report = evaluate_full_size({run, {}});
  CHECK(report.total.rows == 3);
  CHECK(report.confusion.counts == counts);
  CHECK(report.confusion.names == std::vector<std::string>{"dark", "bright"});
  CHECK_FALSE(is_defined(report.total.loss));
  const auto right = static_cast<double>(counts[0] + counts[3]);
  const auto all = static_cast<double>(counts[0] + counts[1] + counts[2] + counts[3]);
  CHECK(report.total.scores.value("pixel_accuracy") == Approx(right / all));
  CHECK(right / all > 0.6);
  CHECK(report.outputs.at(1).rows == counts[2] + counts[3]);
}

TEST_CASE("models and data without maps in files are refused") {
  const TemporaryFolder folder;
  const fs::path run = trained(folder.path() / "runs", "conv2d: {filters: 5, kernel: 1}");
  CHECK_THROWS_WITH(evaluate_full_size({run, {}}), Contains("'drawn_shapes' does not have label maps in files"));
  const fs::path digits = train(testing::small_lenet(folder.path() / "digits", {{"training.max_steps", "1"}})).run;
  const fs::path file = write_png(folder.path() / "a.png", picture_of(30, 30));
  CHECK_THROWS_WITH(segment_image(Model::load(digits), file), Contains("are of models that give each pixel a class"));
}
