// Pictures and their label maps are found in the layouts that data sets come in.
#include "data/segmentation/map_files.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <string>

#include "catch.hpp"
#include "files.hpp"
#include "image_files.hpp"

using namespace gpunn;
using namespace gpunn::data;
using gpunn::testing::TemporaryFolder;
using test::write_file;

namespace {

constexpr int kMapSide = 16;

// Grey pictures of many values.
std::string picture_png(int seed) {
  std::string rows;
  for (int i = 0; i < kMapSide * kMapSide; ++i) rows += static_cast<char>(i * 7 + seed);
  return test::make_png(kMapSide, kMapSide, rows);
}
std::string picture_jpeg() {
  return test::make_jpeg(kMapSide, kMapSide, std::string(kMapSide * kMapSide, 'x'), JCS_GRAYSCALE, 1);
}
// Ids 0 and some others, in stripes.
std::string map_png(const std::vector<int>& ids) {
  std::string rows;
  for (int i = 0; i < kMapSide * kMapSide; ++i) {
    rows += static_cast<char>(i % 2 == 0 ? 0 : ids[static_cast<std::size_t>(i / 2) % ids.size()]);
  }
  return test::make_png(kMapSide, kMapSide, rows);
}
std::string colour_map_png() {
  std::string rows(kMapSide * kMapSide * 3, '\x10');
  return test::make_png(kMapSide, kMapSide, rows, {.color_type = PNG_COLOR_TYPE_RGB});
}

struct MapLayout {
  TemporaryFolder folder;
  DataConfig config;
  SegmentationSet settings;

  MapLayout() { config.path = folder.path(); }
  void put(const std::string& name, const std::string& bytes) const { write_file(folder.path() / name, bytes); }
  // Pictures 1 to 3 and their maps; "*" in a name stands for the number.
  void put_pairs(const std::string& picture, const std::string& map, bool jpeg = true, int first = 1) const {
    for (int i = first; i < first + 3; ++i) {
      const auto name = [&](std::string pattern) {
        return pattern.replace(pattern.find('*'), 1, "00" + std::to_string(i));
      };
      put(name(picture), jpeg ? picture_jpeg() : picture_png(i));
      put(name(map), map_png({1, 5}));
    }
  }
  MapFiles find() const { return find_map_files(config, settings); }
  // "1.jpg 1.png 2.jpg 2.png", below the folder.
  std::string names(const std::vector<MapPair>& pairs) const {
    std::string text;
    for (const MapPair& pair : pairs) {
      for (const auto& file : {pair.picture, pair.map}) {
        text += (text.empty() ? "" : " ") + file.lexically_relative(folder.path()).generic_string();
      }
    }
    return text;
  }
};

}  // namespace

TEST_CASE("two folders with files of the same names are pictures and maps, whatever they are called") {
  MapLayout layout;
  layout.put_pairs("fotos/*.jpg", "masken/*.png");
  const MapFiles files = layout.find();
  CHECK(layout.names(files.train) ==
        "fotos/001.jpg masken/001.png fotos/002.jpg masken/002.png fotos/003.jpg masken/003.png");
  CHECK(files.validation.empty());
  CHECK(files.test.empty());
  CHECK(files.notes.empty());
}

TEST_CASE("maps are told from pictures by their values, and from instances by their numbers") {
  MapLayout layout;
  for (const std::string part : {"train", "test"}) {
    layout.put_pairs(part + "/image/*.png", part + "/label/*.png", false);
    for (int i = 1; i <= 3; ++i) {
      std::vector<int> objects;
      for (int n = 1; n <= 3 * i; ++n) objects.push_back(n);
      layout.put(part + "/instance/00" + std::to_string(i) + ".png", map_png(objects));
    }
  }
  const MapFiles files = layout.find();
  CHECK(layout.names(files.train).starts_with("train/image/001.png train/label/001.png train/image/002.png"));
  CHECK(layout.names(files.test).starts_with("test/image/001.png test/label/001.png"));
  REQUIRE(files.notes.size() == 1);
  CHECK_THAT(files.notes[0], Contains("called label, not instance; data.images and data.maps name the folders"));
  layout.settings.maps = "instance";
  CHECK(layout.names(layout.find().train).starts_with("train/image/001.png train/instance/001.png"));
  layout.settings.images = "label";
  CHECK(layout.names(layout.find().train).starts_with("train/label/001.png train/instance/001.png"));
}

TEST_CASE("parts are recognised above, below and in the names of the folders") {
  MapLayout layout;
  SECTION("PART and PARTannot, with the same names in each") {
    for (const std::string part : {"train", "val", "test"}) layout.put_pairs(part + "/*.jpg", part + "annot/*.png");
    const MapFiles files = layout.find();
    CHECK(layout.names(files.train).starts_with("train/001.jpg trainannot/001.png"));
    CHECK(layout.names(files.validation).starts_with("val/001.jpg valannot/001.png"));
    CHECK(layout.names(files.test).starts_with("test/001.jpg testannot/001.png"));
    CHECK(files.train.size() == 3);
  }
  SECTION("images/PART/CITY and masks/PART/CITY, with endings of their own") {
    for (const std::string part : {"train", "val"}) {
      layout.put_pairs("images/" + part + "/bonn/*_left.jpg", "masks/" + part + "/bonn/*_mask.png");
    }
    const MapFiles files = layout.find();
    CHECK(layout.names(files.train).starts_with("images/train/bonn/001_left.jpg masks/train/bonn/001_mask.png"));
    CHECK(layout.names(files.validation).starts_with("images/val/bonn/001_left.jpg masks/val/bonn/001_mask.png"));
  }
  SECTION("one folder for both") {
    layout.put_pairs("training/*.jpg", "training/*.png");
    layout.put_pairs("testing/*.jpg", "testing/*_mask.png");
    const MapFiles files = layout.find();
    CHECK(layout.names(files.train).starts_with("training/001.jpg training/001.png"));
    CHECK(layout.names(files.test).starts_with("testing/001.jpg testing/001_mask.png"));
  }
  SECTION("named by keys") {
    layout.put_pairs("a/image/*.png", "a/label/*.png", false);
    layout.put_pairs("b/image/*.png", "b/label/*.png", false);
    layout.put_pairs("c/image/*.png", "c/label/*.png", false);
    layout.config.train_folder = "b";
    layout.config.test_folder = "a";
    const MapFiles files = layout.find();
    CHECK(layout.names(files.train).starts_with("b/image/001.png"));
    CHECK(layout.names(files.test).starts_with("a/image/001.png"));
    CHECK(files.train.size() == 3);
  }
  SECTION("in another folder") {
    layout.put_pairs("first/image/*.png", "first/label/*.png", false);
    layout.put_pairs("other/x/*.jpg", "other/y/*.png");
    layout.config.path = layout.folder / "first";
    layout.config.test_path = layout.folder / "other";
    CHECK(layout.names(layout.find().test).starts_with("other/x/001.jpg other/y/001.png"));
  }
}

TEST_CASE("lists name the pictures and maps of each part") {
  MapLayout layout;
  layout.put_pairs("p/*.jpg", "m/*.png");
  layout.put("train.txt", "p/003.jpg m/001.png\n\np/001.jpg\tm/002.png\r\n");
  layout.put("test.txt", "p/002.jpg, m/002.png");
  layout.put("classes.txt", "a\nb");
  const MapFiles files = layout.find();
  CHECK(layout.names(files.train) == "p/003.jpg m/001.png p/001.jpg m/002.png");
  CHECK(layout.names(files.test) == "p/002.jpg m/002.png");
  REQUIRE(files.notes.size() == 1);
  CHECK_THAT(files.notes[0], Contains("the parts are those of the lists in"));
  layout.put("test.txt", "p/002.jpg m/002.png\np/9.jpg m/9.png");
  CHECK_THROWS_WITH(layout.find(), Contains("test.txt:2: there is no file") && Contains("p/9.jpg"));
  layout.put("lists/train.txt", "002");
  layout.settings.lists = "lists";
  CHECK(layout.names(layout.find().train) == "p/002.jpg m/002.png");
  layout.put("lists/train.txt", "002\n004");
  CHECK_THROWS_WITH(layout.find(), Contains("lists/train.txt:2: no picture with a map is called 004"));
}

TEST_CASE("PASCAL VOC: classes and not objects, and the lists in ImageSets/Segmentation") {
  MapLayout layout;
  layout.put_pairs("VOC/JPEGImages/*.jpg", "VOC/SegmentationClass/*.png");
  layout.put("VOC/JPEGImages/009.jpg", picture_jpeg());
  layout.put("VOC/Annotations/009.xml", "<annotation/>");
  for (int i = 1; i <= 3; ++i) {
    std::vector<int> objects;
    for (int n = 1; n <= i; ++n) objects.push_back(n);
    layout.put("VOC/SegmentationObject/00" + std::to_string(i) + ".png", map_png(objects));
  }
  layout.put("VOC/ImageSets/Segmentation/train.txt", "002\n001\n");
  layout.put("VOC/ImageSets/Segmentation/val.txt", "003\n");
  layout.put("VOC/ImageSets/Segmentation/trainval.txt", "001\n002\n003\n");
  layout.put("VOC/ImageSets/Main/train.txt", "009\n");
  layout.config.path /= "VOC";
  const MapFiles files = layout.find();
  CHECK(layout.names(files.train) ==
        "VOC/JPEGImages/002.jpg VOC/SegmentationClass/002.png VOC/JPEGImages/001.jpg "
        "VOC/SegmentationClass/001.png");
  CHECK(layout.names(files.validation) == "VOC/JPEGImages/003.jpg VOC/SegmentationClass/003.png");
}

TEST_CASE("what can't be decided is refused, with the keys that decide") {
  MapLayout layout;
  const auto keys = Contains("data.images and data.maps name the folders");
  layout.put("a/1.jpg", picture_jpeg());
  CHECK_THROWS_WITH(layout.find(), Contains("no pictures with label maps") && keys);
  layout.put("b/1.jpg", picture_jpeg());
  CHECK_THROWS_WITH(layout.find(), Contains("none of the folders") && Contains("a, b") && keys);
  layout.put("b/1.jpg", colour_map_png());
  CHECK_THROWS_WITH(layout.find(), Contains("none of the folders") && Contains("data.colour_table"));
  layout.settings.colour_table = "colours.csv";
  CHECK(layout.find().train.size() == 1);
  layout.put("c/1.png", map_png({3}));
  CHECK_THROWS_WITH(layout.find(), Contains("several folders can be the label maps: b, c") && keys);
  layout.settings.maps = "c";
  CHECK(layout.names(layout.find().train) == "a/1.jpg c/1.png");
}

TEST_CASE("pictures without a map are left out and told") {
  MapLayout layout;
  layout.put_pairs("images/*.jpg", "labels/*.png");
  layout.put("images/9.jpg", picture_jpeg());
  const MapFiles files = layout.find();
  CHECK(files.train.size() == 3);
  REQUIRE(files.notes.size() == 1);
  CHECK_THAT(files.notes[0], Contains("1 picture has no map and is left out: images/9.jpg"));
}
