// Average precision, against what the published evaluators say.
#include <gpunn/error.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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
      image.objects.push_back({.box = box_of(o.at("box")), .category = o.at("class"), .crowd = o.at("crowd") == 1});
    }
    for (const json& d : one.at("detections")) {
      image.detections.push_back({box_of(d.at("box")), d.at("class"), d.at("score")});
    }
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

TEST_CASE("COCO's figures are those of pycocotools, crowds and equal scores among them") {
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/detection.json");
  for (const json& set : json::parse(file)) {
    const std::vector<DetectionImage> images = images_of(set);
    const int64_t classes = set.at("classes");
    const CocoFigures figures = coco_figures(images, classes);
    const json& expected = set.at("coco");
    CHECK(figures.mean == Approx(expected.at("mean").get<double>()).epsilon(kExact));
    CHECK(figures.at_50 == Approx(expected.at("at_50").get<double>()).epsilon(kExact));
    CHECK(figures.at_75 == Approx(expected.at("at_75").get<double>()).epsilon(kExact));
    CHECK(figures.small == Approx(expected.at("small").get<double>()).epsilon(kExact));
    CHECK(figures.medium == Approx(expected.at("medium").get<double>()).epsilon(kExact));
    CHECK(figures.large == Approx(expected.at("large").get<double>()).epsilon(kExact));
  }
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
