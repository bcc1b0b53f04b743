// Images of any size through a model of super-resolution.
#include <gpunn/error.hpp>
#include <gpunn/upscale.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "catch.hpp"
#include "data/images/image.hpp"
#include "data/images/picture.hpp"
#include "inference/models.hpp"
#include "inference/tiles/tiles.hpp"

using namespace gpunn;
using namespace gpunn::testing;
namespace fs = std::filesystem;

namespace {

fs::path write_image(const fs::path& file, int64_t height, int64_t width, int64_t channels) {
  data::Image image{height, width, channels, {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        image.values.push_back(static_cast<uint8_t>(128 + 60 * std::sin(0.4 * static_cast<double>(x + c)) +
                                                    60 * std::cos(0.3 * static_cast<double>(y) + 0.1)));
      }
    }
  }
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << data::encode_png(image);
  return file;
}

int largest_difference(const data::Image& a, const data::Image& b) {
  REQUIRE(a.values.size() == b.values.size());
  int most = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) most = std::max(most, std::abs(a.values[i] - b.values[i]));
  return most;
}

}  // namespace

TEST_CASE("stretches cover a line once, lie within it, and keep what is away from their ends") {
  for (const int64_t length : {1, 63, 64, 65, 100, 129, 1000}) {
    int64_t kept = 0;
    for (const inference::Stretch& one : inference::stretches_of(length, 64, 8)) {
      CAPTURE(length, one.first);
      CHECK(one.keep_first == kept);
      CHECK(one.keep_end > one.keep_first);
      CHECK(one.first >= 0);
      CHECK(one.first + one.size <= length);
      CHECK((one.first == 0 ? one.keep_first == 0 : one.keep_first >= one.first + 8));
      CHECK((one.first + one.size == length ? one.keep_end == length : one.keep_end <= one.first + one.size - 8));
      kept = one.keep_end;
    }
    CHECK(kept == length);
  }
  CHECK(inference::stretches_of(500, 0, 8).size() == 1);
}

TEST_CASE("an image in parts is the image at once, of luma and of colours") {
  const TemporaryFolder folder;
  const std::string colours = GENERATE("luma", "rgb");
  const RunResult run = trained_espcn(folder.path(), colours);
  const fs::path image = write_image(folder.path() / "in/a.png", 45, 70, 3);
  const auto larger = [&](int64_t tile, const std::string& name) {
    UpscaleRequest request{.inputs = {image}, .to = folder.path() / name, .tile = tile, .overlap = 6};
    const std::vector<UpscaledImage> done = upscale({.path = run.run, .overrides = {}}, request);
    REQUIRE(done.size() == 1);
    CHECK(done[0].height == 90);
    CHECK(done[0].width == 140);
    CHECK((done[0].tiles > 1) == (tile > 0));
    return data::read_image_file(folder.path() / name);
  };
  const data::Image whole = larger(0, "whole.png"), tiled = larger(20, "tiled.png");
  CHECK(whole.channels == 3);
  // The receptive field of ESPCN reaches 4 pixels.
  CHECK(largest_difference(whole, tiled) <= 1);
}

TEST_CASE("grey images stay grey, opacity stays, folders keep their names, and a comparison has both halves") {
  const TemporaryFolder folder;
  const RunResult run = trained_espcn(folder.path(), "luma");
  write_image(folder.path() / "in/grey.png", 20, 30, 1);
  write_image(folder.path() / "in/deep/clear.png", 20, 24, 4);
  write_image(folder.path() / "in/dot.png", 1, 1, 3);
  const fs::path to = folder.path() / "out";
  const std::vector<UpscaledImage> done =
      upscale({.path = run.run, .overrides = {}}, {.inputs = {folder.path() / "in"}, .to = to, .compare = true});
  CHECK(done.size() == 3);
  CHECK(data::read_image_file(to / "grey.png").channels == 1);
  const data::Picture clear = data::read_picture(to / "deep/clear.png");
  CHECK(clear.channels == 3);
  CHECK(clear.height == 40);
  CHECK(clear.opacity.size() == 40 * 48);
  CHECK(std::ranges::max(clear.opacity) - std::ranges::min(clear.opacity) > 50);
  CHECK(data::read_image_file(to / "grey.compare.png").width == 2 * 60 + 8);
  CHECK(data::read_image_file(to / "dot.png").values.size() == 2 * 2 * 3);
}

TEST_CASE("a model that sharpens what bicubic enlarged, and one of colours for a grey image") {
  const TemporaryFolder folder;
  const RunResult run = trained_espcn(folder.path(), "rgb", "enlarged");
  const fs::path image = write_image(folder.path() / "in/grey.png", 17, 19, 1);
  upscale({.path = run.run, .overrides = {}}, {.inputs = {image}, .to = folder.path() / "out.png"});
  const data::Image result = data::read_image_file(folder.path() / "out.png");
  CHECK(result.channels == 1);
  CHECK(result.height == 34);
  CHECK(result.width == 38);
  // SRCNN mirrors more pixels at the border than this image has.
  const fs::path dot = write_image(folder.path() / "in/dot.png", 1, 2, 3);
  upscale({.path = run.run, .overrides = {}}, {.inputs = {dot}, .to = folder.path() / "dot.png"});
  CHECK(data::read_image_file(folder.path() / "dot.png").values.size() == 2 * 4 * 3);
}

TEST_CASE("what can't be enlarged is told, before anything is written") {
  const TemporaryFolder folder;
  const RunResult run = trained_espcn(folder.path(), "luma");
  const fs::path image = write_image(folder.path() / "a.png", 8, 8, 1);
  const TrainedModel model{.path = run.run, .overrides = {}};
  CHECK_THROWS_WITH(upscale(model, {.inputs = {image}, .to = image}), Contains("would replace an image that is read"));
  CHECK_THROWS_WITH(upscale(model, {.inputs = {image}, .to = folder.path() / "a.jpg"}), Contains("ends in .png"));
  CHECK_THROWS_WITH(upscale(model, {.inputs = {image, image}, .to = folder.path() / "out"}),
                    Contains("would be written twice"));
  CHECK_THROWS_WITH(upscale(model, {.inputs = {image}, .to = folder.path() / "b.png", .tile = 16, .overlap = 8}),
                    Contains("more than twice the overlap"));
  CHECK_THROWS_WITH(upscale(model, {.inputs = {folder.path() / "none.png"}, .to = folder.path() / "b.png"}),
                    Contains("none.png"));
}
