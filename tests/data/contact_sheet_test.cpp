#include <gpunn/data.hpp>

#include <set>

#include "catch.hpp"
#include "data/images/letters.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"
#include "files.hpp"

using gpunn::data::Image;
using gpunn::data::Lettering;

namespace {

// As lines of '#' and '.', in the pixels of the letters.
std::string drawn(std::string_view text, int64_t magnified = 1) {
  const Lettering lettering{.magnified = magnified, .ink = 1};
  Image image{lettering.height(), lettering.width(text), 1, {}};
  image.values.resize(static_cast<std::size_t>(image.height * image.width));
  lettering.draw(text, 0, 0, image);
  std::string lines;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      lines += image.values[static_cast<std::size_t>(y * image.width + x)] == 0 ? '.' : '#';
    }
    lines += '\n';
  }
  return lines;
}

gpunn::Dataset two_classes(const std::vector<std::string>& names) {
  gpunn::Dataset set;
  set.name = "two";
  set.fields.target() = gpunn::fields::target_field("class", names.empty() ? gpunn::fields::numbered(2) : names);
  set.train.fields[gpunn::kLabelField] =
      gpunn::fields::class_values({0, 0, 1, 0, 0, 1});  // four dark ones, two light ones
  set.train.samples = {gpunn::DType::u8, {6, 3, 24, 24}};
  for (const int32_t label : labels_of(set.train)) {
    for (const int value : {10, 20, 30}) {
      set.train.values.insert(set.train.values.end(), 24 * 24, std::byte(value + 190 * label));
    }
  }
  return set;
}

}  // namespace

TEST_CASE("letters are drawn, of any size") {
  CHECK(drawn("Ag") ==
        ".###.......\n"
        "#...#......\n"
        "#...#..####\n"
        "#####.#...#\n"
        "#...#.#...#\n"
        "#...#.#...#\n"
        "#...#..####\n"
        "..........#\n"
        ".......###.\n");
  CHECK(drawn("-", 2).substr(0, 7 * 11) ==
        "..........\n..........\n..........\n..........\n..........\n..........\n##########\n");
  std::set<std::string> all;
  for (char c = ' '; c <= '~'; ++c) all.insert(drawn({&c, 1}));
  CHECK(all.size() == 95);
  CHECK(drawn("M\xC3\xA4use\n") == drawn("M?use?"));  // a character of two bytes, and none to be seen
  CHECK(Lettering{}.width("") == 0);

  // What does not lie in the picture is left out.
  Image small{4, 4, 1, std::vector<uint8_t>(16, 9)};
  Lettering{.magnified = 3}.draw("#", -5, -5, small);
  Lettering{}.draw("#", 4, 4, small);
  CHECK(small.values.size() == 16);
}

TEST_CASE("a contact sheet has the images of each class in a row, behind its name") {
  const test::TemporaryFolder folder;
  const test::fs::path file = folder / "sheet.png";
  gpunn::write_contact_sheet(two_classes({"dark", "light"}), file, 3);
  // Tiles of 24 by 24, doubled, with gaps of 2: three in a row, two rows. The names have 8 pixels on both sides.
  const int64_t left = 8 + Lettering{}.width("light") + 8, width = left + 150;
  const std::vector<uint8_t> sheet = gpunn::read_image(file, 3, 102, width, false);
  const auto at = [&](int64_t channel, int64_t y, int64_t x) {
    return sheet[static_cast<std::size_t>((channel * 102 + y) * width + x)];
  };
  CHECK(at(0, 2, left) == 10);
  CHECK(at(2, 49, left + 147) == 30);
  CHECK(at(0, 50, left + 73) == 255);
  CHECK(at(1, 60, left + 58) == 210);
  CHECK(at(1, 60, left + 108) == 255);  // the second class has two images

  Image expected{102, left, 3, std::vector<uint8_t>(static_cast<std::size_t>(102 * left * 3), 255)};
  const Lettering lettering{.ink = 32};
  lettering.draw("dark", 2 + (48 - lettering.height()) / 2, 8, expected);
  lettering.draw("light", 52 + (48 - lettering.height()) / 2, 8, expected);
  int different = 0;
  for (int64_t y = 0; y < 102; ++y) {
    for (int64_t x = 0; x < left; ++x) {
      different += at(0, y, x) == expected.values[static_cast<std::size_t>((y * left + x) * 3)] ? 0 : 1;
    }
  }
  CHECK(different == 0);

  // A name that is too long is cut.
  gpunn::write_contact_sheet(two_classes({std::string(5000, 'x'), "b"}), file, 1);
  const Image cut = gpunn::data::read_image_file(file);
  CHECK(cut.width == 8 + Lettering{}.width(std::string(24, 'x')) + 8 + 50);
  CHECK(cut.height == 102);
}

TEST_CASE("a contact sheet is of images") {
  const test::TemporaryFolder folder;
  gpunn::DataConfig points;
  points.dataset = "points";
  CHECK_THROWS_WITH(gpunn::write_contact_sheet(gpunn::load_dataset(points), folder / "sheet.png"),
                    Contains("f32[1000, 2]"));
}
