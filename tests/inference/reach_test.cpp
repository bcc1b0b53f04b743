// How far a model sees, and that an image in parts is therefore the image at once.
#include "inference/tiles/reach.hpp"

#include <gpunn/network.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "inference/enlarging/enlarger.hpp"
#include "inference/models.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using data::Planes;

namespace {

// An untrained model of one channel in a file.
TrainedModel drawn_model(const TemporaryFolder& folder, const std::string& layers, int64_t scale) {
  Experiment experiment = parse_experiment(
      "name: drawn\ntask: super_resolution\nmodel: {layers: [" + layers +
          "]}\ndata: {dataset: drawn_photographs, scale: " + std::to_string(std::max<int64_t>(scale, 2)) +
          ", patch_size: 96, batch_size: 4}\nbackend: cpu\n",
      "drawn.yaml");
  ModelInfo info;
  info.task = "super_resolution";
  info.fields.input().type = {DType::f32, {1, 96 / scale, 96 / scale}};
  info.photographs = PhotographInfo{.scale = scale, .colours = ColourPlanes::luma, .input = ModelInput::small};
  const std::filesystem::path file = folder / "drawn.h5";
  Network(std::move(experiment), info).save(file);
  return {.path = file, .overrides = {}};
}

Planes noise(int64_t height, int64_t width) {
  Planes image{1, height, width};
  std::mt19937 random(7);
  std::uniform_real_distribution<float> draw(0, 1);
  image.values.resize(image.plane());
  std::ranges::generate(image.values, [&] { return draw(random); });
  return image;
}

// The largest difference, in parts of the largest number.
float apart(const Planes& a, const Planes& b) {
  REQUIRE(a.values.size() == b.values.size());
  float most = 0, size = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    most = std::max(most, std::abs(a.values[i] - b.values[i]));
    size = std::max(size, std::abs(a.values[i]));
  }
  REQUIRE(size > 0);
  return most / size;
}

struct Result {
  Planes image;
  inference::EnlargingWork work;
};

Result enlarged(const TrainedModel& model, const Planes& image, std::optional<int64_t> tile,
                std::optional<int64_t> overlap = {}) {
  inference::Enlarger enlarger(model, tile, overlap);
  Result result;
  result.image = enlarger.enlarge(image, result.work);
  return result;
}

std::string conv(int64_t filters, int64_t kernel, int64_t dilation = 1, const std::string& more = "") {
  return "conv2d: {filters: " + std::to_string(filters) + ", kernel: " + std::to_string(kernel) +
         ", dilation: " + std::to_string(dilation) + ", padding: same" + more + "}";
}

const std::string kUNet =
    "conv2d: {name: top, filters: 4, kernel: 3, padding: 1}, max_pool: {window: 2}, " + conv(4, 3) +
    ", relu: {name: half}, conv2d: {filters: 6, kernel: 3, stride: 2, padding: 1}, relu, " + conv(6, 3, 2) +
    ", conv2d_transpose: {name: up, filters: 4, kernel: 2, stride: 2}, add: {from: [up, half]}, relu, "
    "upsample: {name: back, factor: 2, mode: bilinear}, concat: {from: [back, top]}, " +
    conv(1, 3);

}  // namespace

TEST_CASE("parts overlap by what the layers see, and give the whole image") {
  struct Case {
    std::string layers;
    int64_t scale, pixels, step;  // what the layers see, by hand
  };
  const std::vector<Case> cases = {
      {conv(4, 5) + ", relu, " + conv(1, 3), 1, 3, 1},
      {conv(4, 3, 3) + ", tanh, " + conv(4, 3, 2) + ", " + conv(1, 1), 1, 5, 1},
      {conv(4, 4) + ", " + conv(1, 3), 1, 3, 1},  // one side sees a pixel more
      {conv(8, 3) + ", relu, " + conv(4, 3) + ", pixel_shuffle: {factor: 2}", 2, 3, 1},
      {conv(4, 3) + ", batch_norm, relu, conv2d_transpose: {filters: 1, kernel: 9, stride: 3, padding: 4, "
                    "output_padding: 2}",
       3, 3, 1},
      {"pad: {padding: 2, mode: reflect}, conv2d: {filters: 4, kernel: 5}, relu, " + conv(1, 3), 1, 3, 1},
      {conv(4, 3) + ", upsample: {factor: 2, mode: nearest}, " + conv(1, 5), 2, 3, 1},
      {conv(2, 1) + ", avg_pool: {window: 3, stride: 1, padding: 1}, " + conv(1, 1), 1, 1, 1},
      {kUNet, 1, 17, 4},
  };
  const TemporaryFolder folder;
  for (const Case& one : cases) {
    CAPTURE(one.layers);
    const TrainedModel model = drawn_model(folder, one.layers, one.scale);
    const inference::Sight sight = inference::sight_of(model, 1, one.scale);
    CAPTURE(sight.cause);
    REQUIRE(sight.reach);
    CHECK(sight.reach->step == one.step);
    // At most a pixel too far, for the sake of results between two pixels.
    CHECK(sight.reach->pixels >= one.pixels);
    CHECK(sight.reach->pixels <= one.pixels + 1 + 3 * (one.step - 1));
    const Planes image = noise(148, 132);
    const Result whole = enlarged(model, image, 0), parts = enlarged(model, image, 80);
    CHECK(whole.work.tiles == 1);
    CHECK(parts.work.tiles > 1);
    CHECK(parts.work.note.empty());
    CHECK(apart(whole.image, parts.image) < 1e-6F);
  }
}

TEST_CASE("an overlap below what the layers see changes pixels, and the user hears of it") {
  const TemporaryFolder folder;
  const TrainedModel model = drawn_model(folder, conv(4, 9) + ", " + conv(4, 9) + ", " + conv(1, 9), 1);
  const Planes image = noise(100, 60);
  const Result whole = enlarged(model, image, 0), parts = enlarged(model, image, 64, 6);
  CHECK(apart(whole.image, parts.image) > 1e-5F);
  CHECK_THAT(parts.work.note, Contains("sees 12 pixels on each side, and the parts overlap by 6"));
  CHECK_THROWS_WITH(enlarged(model, image, 20), Contains("a tile has to be at least 25, found 20"));
}

TEST_CASE("an image goes at once through layers that see all of it, and the user hears which") {
  const std::string squeeze =
      "conv2d: {name: x, filters: 4, kernel: 3, padding: 1}, global_avg_pool: {name: means, from: x}, "
      "reshape: {shape: [4, 1, 1]}, sigmoid: {name: gate}, multiply: {from: [x, gate]}, " +
      conv(1, 3);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {conv(4, 3) + ", instance_norm: {name: norm}, relu, " + conv(1, 3), "layer norm"},
      {conv(4, 3) + ", group_norm: {name: groups, groups: 2}, relu, " + conv(1, 3), "layer groups"},
      {squeeze, "layer"},
      {conv(4, 3) + ", resize: {name: fixed, rows: 96, columns: 96}, " + conv(1, 3), "layer fixed"},
  };
  const TemporaryFolder folder;
  for (const auto& [layers, cause] : cases) {
    CAPTURE(layers);
    const TrainedModel model = drawn_model(folder, layers, 1);
    const inference::Sight sight = inference::sight_of(model, 1, 1);
    CHECK_FALSE(sight.reach);
    CHECK_THAT(sight.cause, Contains(cause));
  }
  const TrainedModel model = drawn_model(folder, cases[0].first, 1);
  const Planes image = noise(520, 24);
  const Result whole = enlarged(model, image, 0), by_itself = enlarged(model, image, {}),
               asked = enlarged(model, image, 300);
  CHECK(by_itself.work.tiles == 1);
  CHECK(by_itself.image.values == whole.image.values);
  CHECK_THAT(by_itself.work.note, Contains("24 by 520 pixels are computed at once"));
  CHECK(asked.work.tiles > 1);
  CHECK_THAT(asked.work.note, Contains("differs from that of the whole image"));
}

TEST_CASE("parts of drawn networks give the whole image") {
  const TemporaryFolder folder;
  std::mt19937 random(20);
  const auto draw = [&](int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random); };
  for (int run = 0; run < 12; ++run) {
    const int64_t scale = draw(1, 3);
    std::string layers = conv(4, draw(1, 3) * 2 - 1, draw(1, 3), ", name: first");
    int64_t halved = 0;
    for (int64_t i = draw(1, 4); i > 0; --i) {
      switch (draw(0, 5)) {
        case 0:
          layers += ", relu";
          break;
        case 1:
          if (halved < 2) layers += draw(0, 1) == 0 ? ", max_pool: {window: 2}" : ", avg_pool: {window: 2}";
          if (halved < 2) ++halved;
          break;
        case 2:
          layers += ", max_pool: {window: 3, stride: 1, padding: 1}, batch_norm";
          break;
        case 3:
          layers += ", pad: {padding: 1, mode: reflect}, conv2d: {filters: 4, kernel: 3}, tanh";
          break;
        default:
          layers += ", " + conv(4, draw(2, 5), draw(1, 2));
      }
    }
    for (; halved > 0; --halved) {
      layers += draw(0, 1) == 0 ? ", upsample: {factor: 2, mode: bilinear}"
                                : ", conv2d_transpose: {filters: 4, kernel: 4, stride: 2, padding: 1}";
    }
    layers += ", relu: {name: deep}, add: {from: [first, deep]}, " + conv(scale * scale, 3);
    if (scale > 1) layers += ", pixel_shuffle: {factor: " + std::to_string(scale) + "}";
    CAPTURE(layers);
    const TrainedModel model = drawn_model(folder, layers, scale);
    const Planes image = noise(4 * draw(35, 45), 4 * draw(25, 35));
    const Result whole = enlarged(model, image, 0), parts = enlarged(model, image, 92);
    CHECK(parts.work.tiles > 1);
    CHECK(parts.work.note.empty());
    CHECK(apart(whole.image, parts.image) < 1e-5F);
  }
}
