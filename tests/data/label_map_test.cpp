// Label maps from PNG files: ids, palettes, colours; how they are fitted, drawn and written.
#include "data/segmentation/label_map.hpp"

#include <gpunn/error.hpp>

#include <string>

#include "catch.hpp"
#include "data/images/picture.hpp"
#include "data/segmentation/draw_map.hpp"
#include "files.hpp"
#include "image_files.hpp"

using namespace gpunn;
using namespace gpunn::data;
using gpunn::testing::TemporaryFolder;
using test::make_png;
using test::write_file;

namespace {

using Ids = std::vector<uint8_t>;

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

LabelMap read(const std::string& png, const ColourTable* colours = nullptr) {
  return read_label_map(bytes_of(png), "map.png", colours);
}

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

}  // namespace

TEST_CASE("ids are the numbers that a PNG stores, of any bits") {
  const std::string eight = make_png(3, 2, bytes({0, 1, 254, 255, 7, 11}));
  CHECK(read(eight).ids == Ids{0, 1, 254, 255, 7, 11});
  CHECK(read(eight).height == 2);
  CHECK(read(eight).width == 3);
  // Rows of fewer bits begin at a byte.
  CHECK(read(make_png(3, 2, bytes({0b10100000, 0b01000000}), {.bit_depth = 1})).ids == Ids{1, 0, 1, 0, 1, 0});
  CHECK(read(make_png(3, 2, bytes({0b11100100, 0b00011000}), {.bit_depth = 2})).ids == Ids{3, 2, 1, 0, 1, 2});
  CHECK(read(make_png(3, 1, bytes({0xf2, 0x10}), {.bit_depth = 4})).ids == Ids{15, 2, 1});
  CHECK(read(make_png(2, 1, bytes({0, 200, 0, 3}), {.bit_depth = 16})).ids == Ids{200, 3});
  CHECK(read(make_png(2, 1, bytes({5, 255, 6, 0}), {.color_type = PNG_COLOR_TYPE_GRAY_ALPHA})).ids == Ids{5, 6});
  CHECK(read(make_png(9, 1, bytes({0, 1, 2, 3, 4, 5, 6, 7, 8}), {.interlace = PNG_INTERLACE_ADAM7})).ids ==
        Ids{0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("the id of a pixel in a palette is its place there, whatever its colour and opacity") {
  const std::vector<png_color> palette = {{0, 0, 0}, {9, 9, 9}, {9, 9, 9}, {1, 2, 3}};
  const test::PngOptions eight = {.color_type = PNG_COLOR_TYPE_PALETTE, .palette = palette, .palette_alpha = {0, 9}};
  CHECK(read(make_png(4, 1, bytes({0, 2, 1, 3}), eight)).ids == Ids{0, 2, 1, 3});
  const test::PngOptions two = {.color_type = PNG_COLOR_TYPE_PALETTE, .bit_depth = 2, .palette = palette};
  CHECK(read(make_png(4, 1, bytes({0b00100111}), two)).ids == Ids{0, 2, 1, 3});
  // Pictures are still read in colours.
  const Image image = decode_image(bytes_of(make_png(4, 1, bytes({0b00100111}), two)), "map.png");
  CHECK(image.channels == 3);
  CHECK(image.values == Ids{0, 0, 0, 9, 9, 9, 9, 9, 9, 1, 2, 3});
}

TEST_CASE("what is no label map is refused, with the file and the pixel") {
  CHECK_THROWS_WITH(read(make_png(2, 2, bytes({0, 1, 0, 2, 3, 232, 0, 0}), {.bit_depth = 16})),
                    Contains("map.png: the pixel in row 1 and column 0 has the id 1000") && Contains("up to 255"));
  CHECK_THROWS_WITH(read(make_png(1, 1, bytes({1, 2, 3}), {.color_type = PNG_COLOR_TYPE_RGB})),
                    Contains("map.png: a label map in colours") && Contains("data.colour_table"));
  CHECK_THROWS_WITH(read(test::make_jpeg(1, 1, "x", JCS_GRAYSCALE, 1)),
                    Contains("map.png: expected a label map as a PNG"));
  CHECK_THROWS_WITH(read(""), Contains("map.png: expected a label map as a PNG"));
  const std::string whole = make_png(3, 2, bytes({0, 1, 254, 255, 7, 11}));
  CHECK_THROWS_WITH(read(whole.substr(0, 50)), Contains("map.png: damaged PNG"));
}

TEST_CASE("colours are the classes of a table, in files with lines or JSON") {
  const TemporaryFolder folder;
  const std::vector<std::string> files = {
      "0 0 0 sky\n128 64 128 main road\n\n0,0,0,sky\n9 9 9 car 7\n",
      "# of a tool\nsky 0 0 0\nmain road\t128 64 128\ncar 7 9 9 9",
      "name,r,g,b\r\n\"sky\",0,0,0\r\nmain road,128,64,128\r\ncar 7,9,9,9\r\n",
      "R;G;B;name\n0;0;0;sky\n128;64;128;main road\n9;9;9;car 7\n",
      R"({"labels": [{"name": "sky", "color": [0, 0, 0]}, {"name": "main road", "color": [128, 64, 128, 255]},
                     {"name": "car 7", "id": 3, "color": [9, 9, 9]}]})",
      R"({"sky": [0, 0, 0], "main road": [128, 64, 128], "car 7": [9, 9, 9]})"};
  const std::string pixels = bytes({9, 9, 9, 128, 64, 128, 0, 0, 0});
  for (const std::string& text : files) {
    INFO(text);
    write_file(folder / "colours", text);
    const ColourTable table = read_colour_table(folder / "colours");
    CHECK(table.names() == std::vector<std::string>{"sky", "main road", "car 7"});
    CHECK(read(make_png(3, 1, pixels, {.color_type = PNG_COLOR_TYPE_RGB}), &table).ids == Ids{2, 1, 0});
  }
  const ColourTable table = read_colour_table(folder / "colours");
  const std::vector<png_color> palette = {{128, 64, 128}, {0, 0, 0}};
  CHECK(read(make_png(2, 1, bytes({0, 1}), {.color_type = PNG_COLOR_TYPE_PALETTE, .palette = palette}), &table).ids ==
        Ids{1, 0});
  CHECK(read(make_png(2, 1, bytes({9, 0})), &table).ids == Ids{2, 0});
  const std::string with_alpha = bytes({9, 9, 9, 0, 0, 0, 0, 255});
  CHECK(read(make_png(2, 1, with_alpha, {.color_type = PNG_COLOR_TYPE_RGB_ALPHA}), &table).ids == Ids{2, 0});
  CHECK_THROWS_WITH(read(make_png(1, 1, bytes({1, 9, 9}), {.color_type = PNG_COLOR_TYPE_RGB}), &table),
                    Contains("map.png: the pixel in row 0 and column 0 has the colour (1, 9, 9)") &&
                        Contains("colours") && Contains("(9, 9, 9), car 7"));
}

TEST_CASE("colours without names are called by numbers, and colours of one name are one class") {
  const TemporaryFolder folder;
  write_file(folder / "colours", "0 0 0\n1 1 1\n");
  CHECK(read_colour_table(folder / "colours").names() == std::vector<std::string>{"0", "1"});
  write_file(folder / "colours", "0 0 0 car\n1 1 1 tree\n2 2 2 car\n");
  const ColourTable table = read_colour_table(folder / "colours");
  CHECK(table.names() == std::vector<std::string>{"car", "tree"});
  CHECK(table.class_of({2, 2, 2}) == 0);
  CHECK(table.class_of({3, 2, 2}) == std::nullopt);
}

TEST_CASE("tables of colours that can't be read are refused with their line") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::string& why) {
    write_file(folder / "colours", text);
    CHECK_THROWS_WITH(read_colour_table(folder / "colours"), Contains("colours") && Contains(why));
  };
  refused("", "no colour");
  refused("0 0 0 sky\nroad 1 2\n", "colours:2: expected a name and three numbers of 0 to 255");
  refused("0 0 256 sky\n", "colours:1: expected a name and three numbers");
  refused("0 0 0 1 sky 1 1 1\n", "colours:1: the colour can be read in two ways");
  refused("0 0 0 sky\n0 0 0 road\n", "colours:2: the colour (0, 0, 0) is of two classes: sky and road");
  refused("{\"sky\": [0, 0, 0], \"road\": [0, 0, 0]}", "is of two classes");
  refused("{", "no sound JSON");
  std::string many;
  for (int i = 0; i < 256; ++i) many += std::to_string(i) + " 0 0 class" + std::to_string(i) + "\n";
  refused(many, "colours:256: more than 255 classes");
}

TEST_CASE("a map is fitted as its picture is, by the nearest pixel") {
  const LabelMap map{.height = 2, .width = 4, .ids = {1, 2, 3, 4, 5, 6, 7, 8}};
  CHECK(fitted_map(map, 2, 4, {}).ids == map.ids);
  CHECK(fitted_map(map, 1, 2, {}).ids == Ids{6, 8});
  CHECK(fitted_map(map, 4, 4, {}).ids == Ids{1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8});
  CHECK(fitted_map(map, 2, 2, {.crop = true}).ids == Ids{2, 3, 6, 7});
  CHECK(fitted_map(map, 2, 2, {.crop = true, .shorter_side = 4}).ids == Ids{2, 3, 6, 7});
  CHECK(fitted_map(map, 3, 4, {.inside = true}).ids == Ids{1, 2, 3, 4, 5, 6, 7, 8, 255, 255, 255, 255});
}

TEST_CASE("a map and its picture stay in register, whatever the fit") {
  // A picture with two halves and its map.
  const int64_t height = 34, width = 50;
  Image image{height, width, 1, Ids(static_cast<std::size_t>(height * width), 0)};
  LabelMap map{.height = height, .width = width, .ids = Ids(image.values.size(), 0)};
  for (int64_t i = 0; i < height * width; ++i) {
    const bool right = i % width >= 20;
    image.values[static_cast<std::size_t>(i)] = right ? 255 : 0;
    map.ids[static_cast<std::size_t>(i)] = right ? 1 : 0;
  }
  for (const ImageSides& sides : {ImageSides{34, 50}, {17, 25}, {40, 31}, {23, 90}}) {
    const int64_t rows = sides.height, columns = sides.width;
    CAPTURE(rows, columns);
    const auto differ = [&](const Image& fitted, const ImageFit& fit) {
      const LabelMap ids = fitted_map(map, rows, columns, fit);
      int64_t count = 0;
      for (std::size_t i = 0; i < ids.ids.size(); ++i) {
        if (ids.ids[i] != kIgnoredPixel && std::abs(fitted.values[i] - 255 * ids.ids[i]) > 128) ++count;
      }
      return count;
    };
    CHECK(differ(resize(image, rows, columns), {}) == 0);
    CHECK(differ(resize_and_crop(image, rows, columns, 0), {.crop = true}) == 0);
    CHECK(differ(resize_and_crop(image, rows, columns, 100), {.crop = true, .shorter_side = 100}) == 0);
    CHECK(differ(fit_inside(image, rows, columns), {.inside = true}) == 0);
  }
}

TEST_CASE("a map is written with VOC's palette, and read back") {
  CHECK(map_colour(0) == Rgb{0, 0, 0});
  CHECK(map_colour(1) == Rgb{128, 0, 0});
  CHECK(map_colour(15) == Rgb{192, 128, 128});
  CHECK(map_colour(20) == Rgb{0, 64, 128});
  CHECK(map_colour(255) == Rgb{224, 224, 192});
  const LabelMap map{.height = 2, .width = 2, .ids = {0, 15, 20, 255}};
  const std::string png = encode_label_map(map);
  CHECK(read(png).ids == map.ids);
  CHECK(decode_image(bytes_of(png), "map.png").values == Ids{0, 0, 0, 192, 128, 128, 0, 64, 128, 224, 224, 192});
}

TEST_CASE("a map is drawn half transparent, with outlines") {
  Image image{5, 5, 1, Ids(25, 100)};
  LabelMap map{.height = 5, .width = 5, .ids = Ids(25, 0)};
  for (const int pixel : {6, 7, 8, 11, 12, 13, 16, 17, 18}) map.ids[static_cast<std::size_t>(pixel)] = 1;
  map.ids[24] = kIgnoredPixel;
  draw_map(image, map);
  REQUIRE(image.channels == 3);
  const auto colour = [&](std::size_t pixel) {
    return Rgb{image.values[3 * pixel], image.values[3 * pixel + 1], image.values[3 * pixel + 2]};
  };
  CHECK(colour(0) == Rgb{100, 100, 100});
  CHECK(colour(24) == Rgb{100, 100, 100});
  CHECK(colour(6) == Rgb{128, 0, 0});
  CHECK(colour(12) == Rgb{114, 50, 50});
}
