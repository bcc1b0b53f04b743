#include "chart/raster.hpp"

#include <gpunn/error.hpp>

#include <cstdint>

#include <png.h>

#include "catch.hpp"

using namespace gpunn;
using namespace gpunn::chart;

namespace {

// By libpng's reader.
Raster decoded(const std::string& file, int64_t channels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&image, file.data(), file.size()) != 0);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  Raster raster{image.width, image.height, channels, std::vector<uint8_t>(PNG_IMAGE_SIZE(image))};
  REQUIRE(png_image_finish_read(&image, nullptr, raster.pixels.data(), 0, nullptr) != 0);
  return raster;
}

}  // namespace

TEST_CASE("a PNG file has the pixels that it was made of") {
  const int64_t channels = GENERATE(1, 3, 4);
  Raster raster{5, 3, channels, {}};
  for (int64_t i = 0; i < 15 * channels; ++i) raster.pixels.push_back(static_cast<uint8_t>(37 * i));
  const Raster read = decoded(png(raster), channels);
  CHECK(read.width == 5);
  CHECK(read.height == 3);
  CHECK(read.pixels == raster.pixels);
}

TEST_CASE("pixels that do not fit their sizes are no image") {
  CHECK_THROWS_AS(png({2, 2, 1, {1, 2, 3}}), Error);
  CHECK_THROWS_AS(png({1, 1, 2, {1, 2}}), Error);
  CHECK_THROWS_AS(png({0, 0, 1, {}}), Error);
}

TEST_CASE("base64 as RFC 4648 has it") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foob") == "Zm9vYg==");
  CHECK(base64("fooba") == "Zm9vYmE=");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64(std::string("\xFF\xEF\x00", 3)) == "/+8A");
}
