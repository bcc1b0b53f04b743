// Polygons and run lengths become the masks of pycocotools, and objects the label maps of torchvision's reference.
#include "data/segmentation/coco_masks.hpp"

#include <gpunn/error.hpp>

#include <fstream>
#include <iterator>
#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "data/segmentation/run_lengths.hpp"
#include "files.hpp"

using namespace gpunn;
using namespace gpunn::data;
using gpunn::testing::TemporaryFolder;
using nlohmann::json;
using test::write_file;

namespace {

std::string hexadecimal(const std::vector<uint8_t>& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text;
}

json instances(const json& objects, const json& size = json::object()) {
  json image = {{"id", 1}, {"file_name", "a.png"}};
  image.update(size);
  json categories = json::array(), annotations = objects;
  for (int id = 1; id <= 9; ++id) categories.push_back({{"id", id}, {"name", "class " + std::to_string(id)}});
  for (json& one : annotations) one["image_id"] = 1;
  return {{"images", {image}}, {"categories", categories}, {"annotations", annotations}};
}

// Reads such a file, whose image is there.
MaskedImages read(const TemporaryFolder& folder, const json& content) {
  write_file(folder / "images/a.png", "");
  write_file(folder / "instances.json", content.dump());
  return read_coco_masks(folder / "instances.json", folder / "images");
}

}  // namespace

TEST_CASE("masks of COCO are those of pycocotools, label maps those of torchvision's reference") {
  const TemporaryFolder folder;
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/coco_masks.json");
  const json cases = json::parse(file);
  REQUIRE(cases.size() >= 60);
  for (const json& one : cases) {
    INFO(one["name"]);
    const int64_t height = one["height"], width = one["width"];
    const MaskedImages images = read(folder, instances(one["objects"]));
    REQUIRE(images.images.size() == 1);
    const LabelMap map = map_of_objects(images.images[0], height, width);
    CHECK(hexadecimal(map.ids) == one["map"]);
    for (std::size_t i = 0; i < one["runs"].size(); ++i) {
      const std::string expected = one["runs"][i];
      CHECK(text_of(runs_of_text(expected, height, width)) == expected);
      MaskedImage alone = images.images[0];
      alone.objects = {alone.objects[i]};
      const LabelMap mask = map_of_objects(alone, height, width);
      const uint8_t id = alone.objects[0].crowd ? kIgnoredPixel : alone.objects[0].id;
      CHECK(text_of(runs_of(mask.ids, height, width, id)) == expected);
    }
  }
}

TEST_CASE("COCO's categories become classes behind the background, in the order of their ids") {
  const TemporaryFolder folder;
  json content = instances(json::array(), {{"height", 4}, {"width", 5}});
  content["categories"] = {{{"id", 90}, {"name", "dog"}}, {{"id", 3}, {"name", "cat"}}};
  content["images"].push_back({{"id", 2}, {"file_name", "b.png"}});
  content["annotations"] = {
      {{"image_id", 1}, {"category_id", 90}, {"segmentation", {{0, 0, 2, 0, 2, 2}, {1, 1, 2, 2}}}},
      {{"image_id", 7}, {"category_id", 90}, {"segmentation", json::array()}}};
  const MaskedImages read_back = read(folder, content);
  CHECK(read_back.classes == std::vector<std::string>{"background", "cat", "dog"});
  CHECK(read_back.class_ids == std::vector<int64_t>{-1, 3, 90});
  REQUIRE(read_back.images.size() == 1);
  CHECK(read_back.images[0].height == 4);
  CHECK(read_back.images[0].width == 5);
  REQUIRE(read_back.images[0].objects.size() == 1);
  CHECK(read_back.images[0].objects[0].id == 2);
  REQUIRE(read_back.notes.size() == 3);
  CHECK_THAT(read_back.notes[0], Contains("b.png"));
  CHECK_THAT(read_back.notes[1], Contains("1 annotations are of images that"));
  CHECK_THAT(read_back.notes[2], Contains("1 polygons have fewer than three corners"));
}

TEST_CASE("segmentations that are not sound are refused with their annotation") {
  const TemporaryFolder folder;
  const auto refused = [&](const json& segmentation, const std::string& why) {
    const json object = {{"category_id", 1}, {"segmentation", segmentation}};
    const auto make = [&] { map_of_objects(read(folder, instances(json::array({object}))).images[0], 4, 5); };
    CHECK_THROWS_WITH(make(), Contains("annotations[0]: segmentation: ") && Contains(why));
  };
  refused("text", "expected polygons");
  refused(json::array({{1, 2, 3, 4, 5}}), "expected polygons");
  refused(json::array({{1, 2, 3, 4, 5, "6"}}), "expected polygons");
  refused(json::array({{1, 2, 3, 4, 5, 1e7}}), "too far from the image");
  refused(json{{"counts", json::array({20})}}, "expected polygons");
  refused({{"size", {4, 5}}, {"counts", {-1, 21}}}, "expected polygons");
  refused({{"size", {4, 5}}, {"counts", {3, 4}}}, "the run lengths are of 7 pixels, the image is 5 by 4");
  refused({{"size", {5, 4}}, {"counts", json::array({20})}}, "an image of 4 by 5 pixels, the image has 5 by 4");
  refused({{"size", {4, 5}}, {"counts", "d0\x07"}}, "not sound at character 2");
  refused({{"size", {4, 5}}, {"counts", "`"}}, "not sound at character 1");
  refused({{"size", {4, 5}}, {"counts", "oooooooo"}}, "not sound at character 7");
  refused({{"size", {4, 5}}, {"counts", "O"}}, "a run of -1 pixels");
}

TEST_CASE("more categories than a label map has ids are refused") {
  const TemporaryFolder folder;
  json content = instances(json::array());
  for (int id = 10; id <= 255; ++id) content["categories"].push_back({{"id", id}, {"name", std::to_string(id)}});
  CHECK_THROWS_WITH(read(folder, content), Contains("255 categories; a label map has at most 254"));
}
