// Average precision, against what the published evaluators say.
#include <gpunn/error.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "tasks/detection/average_precision.hpp"

using namespace gpunn::tasks;
using nlohmann::json;

namespace {

constexpr double kExact = 1e-12;

Box box_of(const json& b) { return {b[0], b[1], b[2], b[3]}; }

std::vector<DetectionImage> images_of(const json& set) {
  std::vector<DetectionImage> images;
  for (const json& one : set.at("images")) {
    DetectionImage image;
    for (const json& o : one.at("objects")) {
      image.objects.push_back({.box = box_of(o.at("box")),
                               .category = o.at("class"),
                               .crowd = o.at("crowd") == 1,
                               .area = o.at("area").get<double>()});
    }
    for (const json& d : one.at("detections")) {
      image.detections.push_back({box_of(d.at("box")), d.at("class"), d.at("score")});
    }
    image.order = one.at("id");
    images.push_back(std::move(image));
  }
  return images;
}

// An object of 10 by 10 pixels at a place, and a detection that covers it.
TrueBox object_at(double x, bool difficult = false) {
  return {.box = {x, 0, x + 10, 10}, .category = 0, .difficult = difficult};
}
Detection found_at(double x, double score) { return {{x, 0, x + 10, 10}, 0, score}; }

}  // namespace

TEST_CASE("COCO's figures are those of pycocotools, with crowds, areas and equal scores") {
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/detection.json");
  for (const json& set : json::parse(file)) {
    const CocoFigures figures = coco_figures(images_of(set), set.at("classes"));
    const std::map<std::string, double> found = {
        {"mean", figures.mean},
        {"at_50", figures.at_50},
        {"at_75", figures.at_75},
        {"small", figures.small},
        {"medium", figures.medium},
        {"large", figures.large},
        {"recall_1", figures.recall_1},
        {"recall_10", figures.recall_10},
        {"recall_100", figures.recall_100},
        {"recall_small", figures.recall_small},
        {"recall_medium", figures.recall_medium},
        {"recall_large", figures.recall_large},
    };
    for (const auto& [name, value] : found) {
      CAPTURE(name);
      CHECK(value == Approx(set.at("coco").at(name).get<double>()).epsilon(kExact));
    }
    for (std::size_t c = 0; c < figures.by_class.size(); ++c) {
      CHECK(figures.by_class[c] == Approx(set.at("coco").at("by_class").at(c).get<double>()).epsilon(kExact));
    }
  }
}

TEST_CASE("any number of detections can lie within a crowd, which is not an object to find") {
  DetectionImage image;
  image.objects = {{.box = {0, 0, 100, 100}, .category = 0, .crowd = true}, object_at(300)};
  image.detections = {found_at(0, 0.9), found_at(20, 0.8), found_at(300, 0.7), found_at(60, 0.6)};
  const std::vector images{image};
  CHECK(coco_figures(images, 1).mean == Approx(1));
  CHECK(coco_figures(images, 1).recall_1 == 0);
  CHECK(coco_figures(images, 1).recall_10 == 1);
  CHECK(voc_mean(images, 1, all_points) == 1);
  image.objects.pop_back();
  image.detections = {found_at(0, 0.9)};
  CHECK_FALSE(gpunn::is_defined(coco_figures(std::vector{image}, 1).mean));
}

TEST_CASE("a difficult object is found once, as VOC has it") {
  DetectionImage image;
  image.objects = {object_at(0, true), object_at(300)};
  image.detections = {found_at(0, 0.9), found_at(300, 0.5)};
  CHECK(coco_figures(std::vector{image}, 1).mean == Approx(1));
  image.detections.push_back(found_at(1, 0.8));  // of the same object: wrong
  CHECK(coco_figures(std::vector{image}, 1).at_50 == Approx(0.5));
}

TEST_CASE("the annotation's area decides the size of an object, also an area of 0") {
  DetectionImage image;
  image.objects = {{.box = {0, 0, 100, 100}, .category = 0, .area = 0}};
  const CocoFigures small = coco_figures(std::vector{image}, 1);
  CHECK(small.small == 0);
  CHECK_FALSE(gpunn::is_defined(small.large));
  image.objects[0].area.reset();
  const CocoFigures large = coco_figures(std::vector{image}, 1);
  CHECK(large.large == 0);
  CHECK_FALSE(gpunn::is_defined(large.small));
}

TEST_CASE("COCO takes the best 100 detections of an image and class") {
  DetectionImage image;
  image.objects = {object_at(0)};
  image.detections = {found_at(0, 0.1)};
  for (int i = 0; i < 99; ++i) image.detections.push_back(found_at(300, 0.9));
  CHECK(coco_figures(std::vector{image}, 1).recall_100 == 1);
  CHECK(coco_figures(std::vector{image}, 1).recall_10 == 0);
  image.detections.push_back(found_at(300, 0.9));
  CHECK(coco_figures(std::vector{image}, 1).recall_100 == 0);
}

TEST_CASE("pycocotools counts a detection of the annotation with the id 0 as wrong") {
  DetectionImage image;
  image.objects = {object_at(0)};
  image.objects[0].has_id_zero = true;
  image.detections = {found_at(0, 0.9)};
  CHECK(coco_figures(std::vector{image}, 1).mean == 0);
}

TEST_CASE("VOC: an object is found once, what is found twice is wrong, difficult objects count for nothing") {
  DetectionImage image;
  image.objects = {object_at(0), object_at(100), object_at(200, true)};
  image.detections = {found_at(0, 0.9), found_at(1, 0.8), found_at(200, 0.7), found_at(101, 0.6), found_at(300, 0.5)};
  const PrecisionRecall curve = voc_curve(std::vector{image}, 0);
  CHECK(curve.objects == 2);
  CHECK(curve.precision == std::vector<double>{1, 0.5, 2.0 / 3, 0.5});
  CHECK(curve.recall == std::vector<double>{0.5, 0.5, 1, 1});
  CHECK(all_points(curve) == Approx(0.5 * 1 + 0.5 * 2 / 3));
  CHECK(eleven_points(curve) == Approx((6 * 1 + 5 * 2.0 / 3) / 11));
}

TEST_CASE("classes without objects say nothing, and images without anything are no obstacle") {
  const std::vector<DetectionImage> nothing(3);
  CHECK(std::isnan(voc_mean(nothing, 2, all_points)));
  CHECK(std::isnan(coco_figures(nothing, 2).mean));
  DetectionImage image;
  image.objects = {object_at(0)};
  CHECK(voc_mean(std::vector{image, DetectionImage{}}, 2, all_points) == 0);
  image.detections = {found_at(0, 0.5)};
  CHECK(voc_mean(std::vector{image, DetectionImage{}}, 2, all_points) == 1);
  CHECK(coco_figures(std::vector{image}, 2).mean == Approx(1));
}

TEST_CASE("confusion tells taken classes, objects that are missed, and detections of nothing") {
  DetectionImage image;
  image.objects = {object_at(0), object_at(100)};
  Detection other = found_at(0, 0.9);
  other.category = 1;
  image.detections = {other, found_at(300, 0.8), found_at(100, 0.1)};
  CHECK(confusion_of(std::vector{image}, 2, 0.5) == std::vector<int64_t>{0, 1, 1, 0, 0, 0, 1, 0, 0});
}

TEST_CASE("confusion counts neither a crowd nor the detections within it") {
  DetectionImage image;
  image.objects = {{.box = {0, 0, 100, 100}, .category = 0, .crowd = true}, object_at(300)};
  image.detections = {found_at(0, 0.9), found_at(20, 0.8), found_at(300, 0.7), found_at(500, 0.6)};
  CHECK(confusion_of(std::vector{image}, 1, 0.5) == std::vector<int64_t>{1, 0, 1, 0});
}

TEST_CASE("the sample of a published VOC evaluator has its figures", "[data]") {
  const char* root = std::getenv("GPUNN_DATA_DIR");
  const std::filesystem::path folder = std::filesystem::path(root == nullptr ? "" : root) / "detection/map-sample";
  if (root == nullptr || !std::filesystem::exists(folder)) {
    WARN("no detection/map-sample in GPUNN_DATA_DIR; nothing was tested");
    return;
  }
  std::vector<DetectionImage> images;
  for (int i = 1; i <= 7; ++i) {
    const std::string name = "0000" + std::to_string(i) + ".txt";
    DetectionImage image;
    std::ifstream truth(folder / "groundtruths" / name), found(folder / "detections" / name);
    std::string category;
    double score = 0, x = 0, y = 0, w = 0, h = 0;
    while (truth >> category >> x >> y >> w >> h) image.objects.push_back({.box = {x, y, x + w, y + h}});
    while (found >> category >> score >> x >> y >> w >> h) image.detections.push_back({{x, y, x + w, y + h}, 0, score});
    images.push_back(std::move(image));
  }
  const VocRule rule{.overlap = 0.3, .pixels = PixelRule::inclusive};
  const PrecisionRecall curve = voc_curve(images, 0, rule);
  CHECK(std::round(all_points(curve) * 10000) == 2457);
  CHECK(std::round(eleven_points(curve) * 10000) == 2684);
}
