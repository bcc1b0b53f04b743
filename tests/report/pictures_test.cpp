#include "report/pictures.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "training/tallies.hpp"

using namespace gpunn;
using namespace gpunn::reports;
using namespace gpunn::testing;

namespace {

template <class T>
std::span<const std::byte> bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

std::array<int, 4> pixel(const chart::Raster& raster, int64_t y, int64_t x) {
  std::array<int, 4> result{};
  for (int64_t c = 0; c < raster.channels; ++c) {
    result[static_cast<std::size_t>(c)] =
        raster.pixels[static_cast<std::size_t>((y * raster.width + x) * raster.channels + c)];
  }
  return result;
}

}  // namespace

TEST_CASE("a sample's planes become pixels") {
  const std::vector<uint8_t> planes{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16, 21, 22, 23, 24, 25, 26};
  const auto colour = picture_of({DType::u8, {1, 3, 2, 3}}, bytes(planes));
  REQUIRE(colour);
  CHECK((colour->width == 3 && colour->height == 2 && colour->channels == 3));
  CHECK(pixel(*colour, 1, 2) == std::array{6, 16, 26, 0});
  const std::vector<float> grey{-1, 0, 1, std::numeric_limits<float>::quiet_NaN()};
  const auto stretched = picture_of({DType::f32, {1, 1, 2, 2}}, bytes(grey));
  REQUIRE(stretched);
  CHECK(stretched->pixels == std::vector<uint8_t>{0, 128, 255, 0});
}

TEST_CASE("what is no image has no picture") {
  const std::vector<float> values(8, 0.0F);
  CHECK_FALSE(picture_of({DType::f32, {1, 8}}, bytes(values)));
  CHECK_FALSE(picture_of({DType::f32, {1, 2, 2, 2}}, bytes(values)));
  CHECK_FALSE(picture_of({DType::f32, {1, 1, 2, 2}}, bytes(values)));  // more values than that
}

TEST_CASE("filters of one channel are grey tiles, zero in the middle") {
  // Nine filters of 2 x 2: the last begins a second row of tiles.
  std::vector<float> weights(36, 0.0F);
  weights[0] = 0.5F;
  weights[1] = -0.5F;
  weights[2] = 0.25F;
  const auto grid = filter_grid({9, 1, 2, 2}, weights);
  REQUIRE(grid);
  CHECK((grid->shown == 9 && !grid->by_channel));
  CHECK(grid->raster.width == 8 * 40 + 7 * 4);
  CHECK(grid->raster.height == 2 * 40 + 4);
  CHECK(pixel(grid->raster, 0, 0) == std::array{255, 255, 255, 255});
  CHECK(pixel(grid->raster, 0, 39) == std::array{0, 0, 0, 255});
  CHECK(pixel(grid->raster, 39, 0) == std::array{191, 191, 191, 255});
  CHECK(pixel(grid->raster, 0, 41)[3] == 0);                             // between two tiles
  CHECK(pixel(grid->raster, 50, 10) == std::array{128, 128, 128, 255});  // all zero
  CHECK(pixel(grid->raster, 50, 60)[3] == 0);                            // there is no tenth
}

TEST_CASE("filters of three channels are coloured, others a tile a channel") {
  const auto colour = filter_grid({1, 3, 1, 1}, std::vector<float>{1, -1, 0});
  REQUIRE(colour);
  CHECK(pixel(colour->raster, 0, 0) == std::array{255, 0, 128, 255});
  const auto wide = filter_grid({20, 64, 1, 1}, std::vector<float>(20 * 64, 1.0F));
  REQUIRE(wide);
  CHECK((wide->by_channel && wide->shown == 16 && wide->shown_channels == 16));
  CHECK((wide->raster.width == 16 * 44 - 4 && wide->raster.height == 16 * 44 - 4));
}

TEST_CASE("no grid where the weights are none of a convolution") {
  CHECK_FALSE(filter_grid({4, 4}, std::vector<float>(16)));
  CHECK_FALSE(filter_grid({1, 1, 2, 2}, std::vector<float>(3)));
  CHECK_FALSE(filter_grid({1, 1, 1000, 1}, std::vector<float>(1000)));
}

TEST_CASE("the heat map has a square for each cell") {
  const ClassEvalReport report = tallied({3, 1, 0, 4}, {"a", "b"});
  const chart::Raster map = heat_map(report.confusion);
  CHECK(map.width == 480);
  CHECK(pixel(map, 0, 479)[3] > 0);  // one a taken for b
  CHECK(pixel(map, 479, 0)[3] == 0);
  CHECK(pixel(map, 479, 479)[3] == 255);
  CHECK(pixel(map, 0, 0)[3] > pixel(map, 0, 479)[3]);
}
