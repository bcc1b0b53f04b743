// The user's own pictures with label maps, and the shapes that the program draws.
#include <gpunn/data.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <string>

#include <zlib.h>

#include "catch.hpp"
#include "files.hpp"
#include "image_files.hpp"

using namespace gpunn;
using gpunn::testing::TemporaryFolder;
using test::make_png;
using test::write_file;

namespace {

using PixelIds = std::vector<int>;

// Pictures are 4 pixels wide; their grey values are `value` and up.
std::string grey_map_png(int64_t height = 2, int value = 10) {
  std::string rows;
  for (int i = 0; i < 4 * height; ++i) rows += static_cast<char>(value + 9 * i);
  return make_png(4, static_cast<uint32_t>(height), rows);
}
std::string ids_png(const PixelIds& ids) {
  return make_png(4, static_cast<uint32_t>(ids.size() / 4), std::string(ids.begin(), ids.end()));
}

struct MapFolder {
  TemporaryFolder folder;
  DataConfig config;
  SegmentationSet settings;

  MapFolder() {
    config.dataset = "segmentation_folder";
    config.path = folder.path();
    settings.images = "image";  // pictures of a few pixels have hardly more values than maps
    settings.maps = "label";
  }
  void put(const std::string& name, const std::string& bytes) const { write_file(folder.path() / name, bytes); }
  Dataset load() {
    config.kind = settings;
    return load_dataset(config);
  }
};

PixelIds map_of(const Split& split, int64_t row) {
  const FieldValues& maps = split.fields.at("map");
  const auto size = static_cast<std::size_t>(maps.type.shape[1] * maps.type.shape[2]);
  PixelIds ids;
  for (std::size_t i = 0; i < size; ++i) {
    ids.push_back(std::to_integer<int>(maps.values[static_cast<std::size_t>(row) * size + i]));
  }
  return ids;
}

bool has_map_note(const Dataset& set, const std::string& text) {
  return std::ranges::any_of(set.notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

// A set of the folder of real data; no rows if it is not there.
Dataset real_set(const std::string& name) {
  const char* const data = std::getenv("GPUNN_DATA_DIR");
  DataConfig config;
  config.dataset = "segmentation_folder";
  if (data != nullptr) config.path = test::fs::path(data) / "segmentation" / name;
  if (data == nullptr || !test::fs::is_directory(config.path)) {
    std::cout << "skipped: " << name << " (set GPUNN_DATA_DIR to a folder with segmentation/" << name << ")\n";
    return {};
  }
  return load_dataset(config);
}

}  // namespace

TEST_CASE("pictures and maps become samples, and the ids of the maps their classes") {
  MapFolder data;
  data.put("train/image/1.png", grey_map_png());
  data.put("train/label/1.png", ids_png({0, 1, 1, 255, 3, 0, 0, 0}));
  data.put("train/image/2.png", grey_map_png(2, 50));
  data.put("train/label/2.png", ids_png({0, 0, 0, 0, 0, 0, 1, 1}));
  data.put("test/image/3.png", grey_map_png());
  data.put("test/label/3.png", ids_png({4, 0, 0, 0, 0, 0, 0, 0}));
  const Dataset set = data.load();
  CHECK(set.train.samples == TensorType{DType::u8, {2, 1, 2, 4}});
  CHECK(std::to_integer<int>(set.train.values[8]) == 50);
  const Field& map = set.fields.target();
  CHECK(map.name == "map");
  CHECK(map.kind == "label_map");
  CHECK(map.type == TensorType{DType::u8, {2, 4}});
  CHECK(map.names == std::vector<std::string>{"0", "1", "2", "3", "4"});
  CHECK(map.ids.empty());
  CHECK(map.ignored == 255);
  CHECK(map_of(set.train, 0) == PixelIds{0, 1, 1, 255, 3, 0, 0, 0});
  CHECK(map_of(set.test, 0) == PixelIds{4, 0, 0, 0, 0, 0, 0, 0});
  CHECK(set.fields.input().mean.size() == 1);
  // Rows are put aside with their maps.
  data.config.validation_fraction = 0.5;
  const Dataset shared = data.load();
  REQUIRE(shared.validation.rows() == 1);
  const bool first = std::to_integer<int>(shared.validation.values[0]) == 10;
  CHECK(map_of(shared.validation, 0)[6] == (first ? 0 : 1));
}

TEST_CASE("names of classes come from a list, a file or a table of colours, and void is no class") {
  MapFolder data;
  data.put("image/1.png", grey_map_png());
  data.put("label/1.png", ids_png({0, 1, 2, 255, 2, 0, 0, 0}));
  data.settings.class_names = {"sky", "road", "void"};
  Dataset set = data.load();
  CHECK(set.fields.target().names == std::vector<std::string>{"sky", "road"});
  CHECK(map_of(set.train, 0) == PixelIds{0, 1, 255, 255, 255, 0, 0, 0});
  CHECK(has_map_note(set, "the id 2, void, is ignored, as its name says; data.ignore_index names another"));

  data.settings.ignore_index = 0;
  set = data.load();
  CHECK(set.fields.target().names == std::vector<std::string>{"road", "void"});
  CHECK(set.fields.target().ids == std::vector<int64_t>{1, 2});
  CHECK(map_of(set.train, 0) == PixelIds{255, 0, 1, 255, 1, 255, 255, 255});

  data.settings.class_names = {};
  data.settings.classes.clear();
  data.settings.ignore_index = -1;
  data.put("classes.txt", "2: road sign\n# a comment\n0: sky\n1: tree\n");
  CHECK(data.load().fields.target().names == std::vector<std::string>{"sky", "tree", "road sign"});
  data.settings.classes = data.folder.write("names", "2 roads\nsky\nsea\n");
  CHECK(data.load().fields.target().names == std::vector<std::string>{"2 roads", "sky", "sea"});

  data.settings.class_names = {};
  data.settings.classes.clear();
  data.settings.ignore_index = -1;
  data.settings.colour_table = data.folder.write("colours", "0 0 0 sky\n9 9 9 sea\n");
  data.put("label/1.png",
           make_png(4, 2, std::string(12, '\x09') + std::string(12, '\0'), {.color_type = PNG_COLOR_TYPE_RGB}));
  data.put("image/1.png", test::make_jpeg(4, 2, std::string(8, 'x'), JCS_GRAYSCALE, 1));
  set = data.load();
  CHECK(set.fields.target().names == std::vector<std::string>{"sky", "sea"});
  CHECK(map_of(set.train, 0) == PixelIds{1, 1, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("masks of 0 and 255 have two classes") {
  MapFolder data;
  data.put("image/1.png", grey_map_png());
  data.put("label/1.png", ids_png({0, 255, 255, 0, 0, 0, 0, 0}));
  Dataset set = data.load();
  CHECK(set.fields.target().count() == 2);
  CHECK(map_of(set.train, 0) == PixelIds{0, 1, 1, 0, 0, 0, 0, 0});
  CHECK(has_map_note(set, "255 is class 1, not ignored"));
  data.settings.ignore_index = 255;
  data.settings.class_names = {"a", "b"};
  set = data.load();
  CHECK(map_of(set.train, 0) == PixelIds{0, 255, 255, 0, 0, 0, 0, 0});
}

TEST_CASE("pictures of several sizes need a size, to which maps are scaled with them") {
  MapFolder data;
  data.put("image/1.png", grey_map_png());
  data.put("label/1.png", ids_png({0, 1, 2, 3, 0, 1, 2, 3}));
  data.put("image/2.png", grey_map_png(4));
  data.put("label/2.png", ids_png({0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
  CHECK_THROWS_WITH(data.load(), Contains("the pictures have 2 sizes, in rows by columns: 2 by 4 (1 picture), 4 by 4 "
                                          "(1 picture)") &&
                                     Contains("data.image_size: [rows, columns]"));
  data.settings.image_size = {2, 2};
  const Dataset set = data.load();
  CHECK(set.train.samples.shape == Shape{2, 1, 2, 2});
  CHECK(map_of(set.train, 0) == PixelIds{1, 2, 1, 2});
  CHECK(map_of(set.train, 1) == PixelIds{1, 1, 3, 3});
}

TEST_CASE("maps that do not fit are refused with their file") {
  MapFolder data;
  data.put("image/1.png", grey_map_png());
  data.put("label/1.png", ids_png({0, 1, 2, 3, 0, 1, 2, 3}));
  data.settings.class_names = {"a", "b", "c"};
  CHECK_THROWS_WITH(data.load(), Contains("label/1.png: the map has the id 3, which is not of one of the 3 classes") &&
                                     Contains("data.ignore_index: 3"));
  data.put("label/1.png", ids_png({0, 1, 2, 2}));
  CHECK_THROWS_WITH(data.load(),
                    Contains("label/1.png: the map has 1 by 4 pixels, its picture") && Contains("image/1.png 2 by 4"));
  data.put("label/1.png", ids_png({0, 0, 0, 0, 0, 0, 0, 0}));
  data.settings.class_names = {};
  CHECK_THROWS_WITH(data.load(), Contains("1 class; expected at least two"));
}

TEST_CASE("damaged pictures are left out with their maps") {
  MapFolder data;
  data.put("image/1.png", grey_map_png());
  data.put("image/2.png", grey_map_png().substr(0, 40));
  data.put("image/3.png", grey_map_png());
  for (int i = 1; i <= 3; ++i) data.put("label/" + std::to_string(i) + ".png", ids_png({i, 0, 0, 1, 1, 1, 1, 1}));
  CHECK_THROWS_WITH(data.load(), Contains("image/2.png"));
  data.config.damaged = Damaged::skip;
  const Dataset set = data.load();
  REQUIRE(set.train.rows() == 2);
  CHECK(map_of(set.train, 1)[0] == 3);
}

TEST_CASE("COCO's objects become maps, in the pictures' folder wherever it is") {
  MapFolder data;
  data.settings.images = data.settings.maps = "";
  data.put("photos/2017/1.png", grey_map_png());
  data.settings.instances = data.folder.write("instances.json", R"({"images": [{"id": 7, "file_name": "1.png"}],
       "categories": [{"id": 5, "name": "cat"}, {"id": 2, "name": "dog"}],
       "annotations": [{"image_id": 7, "category_id": 5, "segmentation": [[0, 0, 2, 0, 2, 1, 0, 1]]},
                       {"image_id": 7, "category_id": 2, "segmentation": [[1, 0, 3, 0, 3, 1, 1, 1]]}]})");
  const Dataset set = data.load();
  CHECK(set.fields.target().names == std::vector<std::string>{"background", "dog", "cat"});
  CHECK(set.fields.target().ids == std::vector<int64_t>{-1, 2, 5});
  CHECK(map_of(set.train, 0) == PixelIds{2, 255, 1, 0, 0, 0, 0, 0});
}

TEST_CASE("CamVid loads without settings") {
  const Dataset set = real_set("camvid");
  if (set.train.rows() == 0) return;
  CHECK(set.train.samples == TensorType{DType::u8, {367, 3, 180, 240}});
  CHECK(set.validation.rows() == 101);
  CHECK(set.test.rows() == 233);
  CHECK(set.fields.target().names.size() == 11);
  CHECK(set.fields.target().names.back() == "bicyclist");
  // Counts of stats.json.
  const FieldSummary train = summarize(set.train, set.fields).fields.at("map");
  CHECK(train.counts == std::vector<int64_t>{2655759, 3682975, 156038, 5040098, 710515, 1539084, 185523, 178727, 929651,
                                             101362, 46192});
  CHECK(std::accumulate(train.counts.begin(), train.counts.end(), int64_t{0}) == int64_t{367} * 180 * 240 - 628476);
}

TEST_CASE("nuclei load without settings") {
  const Dataset set = real_set("nuclei");
  if (set.train.rows() == 0) return;
  CHECK(set.train.samples == TensorType{DType::u8, {267, 1, 256, 256}});
  CHECK(set.test.rows() == 67);
  CHECK(set.fields.target().names == std::vector<std::string>{"background", "nucleus"});
  CHECK(has_map_note(set, "called label, not instance"));
}

TEST_CASE("drawn shapes are the same bits for a seed, with all classes and ignored outlines") {
  const auto make = [](uint64_t seed, int64_t train, std::vector<int64_t> size = {}) {
    DataConfig config;
    config.dataset = "drawn_shapes";
    config.seed = seed;
    config.synthetic_train = train;
    config.synthetic_test = 3;
    SegmentationSet settings;
    settings.image_size = std::move(size);
    config.kind = settings;
    return load_dataset(config);
  };
  const auto crc_of = [](const std::vector<std::byte>& values) {
    return crc32(0, reinterpret_cast<const Bytef*>(values.data()), static_cast<uInt>(values.size()));
  };
  const Dataset set = make(1, 200);
  CHECK(set.train.samples == TensorType{DType::u8, {200, 3, 64, 64}});
  CHECK(set.fields.target().names == std::vector<std::string>{"background", "circle", "square", "triangle", "ring"});
  CHECK(crc_of(set.train.values) == 0xbb97f67);
  CHECK(crc_of(set.train.fields.at("map").values) == 0x922cf4e5);
  CHECK(crc_of(make(1, 200).train.values) == crc_of(set.train.values));
  CHECK(crc_of(make(2, 200).train.values) != crc_of(set.train.values));
  CHECK(crc_of(make(1, 5).test.values) == crc_of(set.test.values));
  const FieldSummary summary = summarize(set.train, set.fields).fields.at("map");
  const int64_t all = int64_t{200} * 64 * 64,
                sum = std::accumulate(summary.counts.begin(), summary.counts.end(), int64_t{0});
  for (const int64_t count : summary.counts) CHECK(count > all / 100);
  CHECK(summary.counts[0] > all / 2);
  CHECK(sum < all);
  CHECK(sum > all * 8 / 10);
  CHECK(make(1, 2, {20, 30}).train.fields.at("map").type.shape == Shape{2, 20, 30});
}
