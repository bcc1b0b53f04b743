#include "data/segmentation/coco_masks.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "data/coco/coco_file.hpp"
#include "data/images/image.hpp"
#include "data/segmentation/run_lengths.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t kMostCategories = kIgnoredPixel - 1;
constexpr std::size_t kLeastNumbers = 6;  // of a polygon: three corners

bool is_list_of_numbers(const json& value) {
  return value.is_array() && std::ranges::all_of(value, [](const json& x) { return x.is_number(); });
}

// Reads the member `segmentation`: polygons, or run lengths. Returns the number of polygons left out, which have fewer
// than three corners.
int64_t read_segmentation(const CocoEntry& annotation, MaskedObject& object) {
  const json& found = annotation.member("segmentation");
  const auto fail = [&]() {
    annotation.fail(
        "segmentation: expected polygons [[x, y, ...], ...] or run lengths {\"size\": [height, width], \"counts\": "
        "...}, found " +
        found.dump().substr(0, 80));
  };
  if (found.is_array()) {
    int64_t left_out = 0;
    for (const json& polygon : found) {
      if (!is_list_of_numbers(polygon) || polygon.size() % 2 != 0) fail();
      if (polygon.size() < kLeastNumbers) {
        ++left_out;
      } else {
        object.polygons.push_back(polygon.get<std::vector<double>>());
      }
    }
    return left_out;
  }
  if (!found.is_object() || !found.contains("size") || !found.contains("counts")) fail();
  const json &size = found["size"], &counts = found["counts"];
  if (!is_list_of_numbers(size) || size.size() != 2 || !size[0].is_number_integer() || !size[1].is_number_integer()) {
    fail();
  }
  object.size = size.get<std::vector<int64_t>>();
  if (counts.is_string()) {
    object.runs = counts.get<std::string>();
  } else if (is_list_of_numbers(counts)) {
    const bool fit = std::ranges::all_of(counts, [](const json& x) { return x >= 0 && x <= kMostPixels; });
    if (!fit) fail();
    object.counts = counts.get<std::vector<uint32_t>>();
  } else {
    fail();
  }
  return 0;
}

std::vector<RunLengths> masks_of(const MaskedObject& object, int64_t height, int64_t width) {
  std::vector<RunLengths> masks;
  for (const std::vector<double>& polygon : object.polygons) masks.push_back(runs_of_polygon(polygon, height, width));
  if (object.size.empty()) return masks;
  if (object.size != std::vector<int64_t>{height, width}) {
    throw Error("the run lengths are of an image of " + std::to_string(object.size[1]) + " by " +
                std::to_string(object.size[0]) + " pixels, the image has " + std::to_string(width) + " by " +
                std::to_string(height));
  }
  if (object.counts.empty()) return {runs_of_text(object.runs, height, width)};
  masks.push_back({.height = height, .width = width, .counts = object.counts});
  require_whole(masks.back());
  return masks;
}

fs::path folder_of_images(const fs::path& root, const std::vector<CocoImage>& images) {
  fs::path found = root;
  if (images.empty() || files::is_file(root / images[0].name)) return found;
  files::any_file_beneath(root, [&](const fs::path& file) {
    if (!file.generic_string().ends_with("/" + images[0].name)) return false;
    const std::string path = file.generic_string();
    found = path.substr(0, path.size() - images[0].name.size() - 1);
    return true;
  });
  return found;
}

}  // namespace

MaskedImages read_coco_masks(const fs::path& file, const fs::path& root) {
  const CocoFile coco(file);
  const fs::path images = folder_of_images(root, coco.images());
  if (coco.categories().size() > kMostCategories) {
    throw Error(file.string() + ": " + std::to_string(coco.categories().size()) +
                " categories; a label map has at most " + std::to_string(kMostCategories) + " besides the background");
  }
  MaskedImages result{.images = {}, .classes = {"background"}, .class_ids = {-1}, .notes = {}};
  std::map<int64_t, uint8_t> classes;
  for (const auto& [id, name] : coco.categories()) {
    classes[id] = static_cast<uint8_t>(result.classes.size());
    result.classes.push_back(name);
    result.class_ids.push_back(id);
  }
  for (const CocoImage& image : coco.images()) {
    result.images.push_back({.file = images / image.name,
                             .place = file.string() + ": image " + image.id,
                             .id = image.id,
                             .height = image.height,
                             .width = image.width});
  }
  int64_t without_area = 0;
  const int64_t unlisted = coco.each_annotation([&](const CocoEntry& one, int64_t category, std::size_t image) {
    MaskedObject object{.id = classes.at(category), .crowd = one.flag("iscrowd"), .place = one.where()};
    without_area += read_segmentation(one, object);
    result.images[image].objects.push_back(std::move(object));
  });
  leave_out_missing(result.images, images, result.notes);
  if (unlisted > 0) result.notes.push_back(unlisted_note(unlisted, file));
  if (without_area > 0) {
    result.notes.push_back(std::to_string(without_area) + " polygons have fewer than three corners and are left out");
  }
  return result;
}

LabelMap map_of_objects(const MaskedImage& image, int64_t height, int64_t width) {
  const auto pixels = static_cast<std::size_t>(height * width);
  LabelMap map{.height = height, .width = width, .ids = std::vector<uint8_t>(pixels, 0)};
  std::vector<std::size_t> last(pixels, 0);  // the object, counted from 1, that covered a pixel last
  for (std::size_t i = 0; i < image.objects.size(); ++i) {
    const MaskedObject& object = image.objects[i];
    const auto take = [&](std::size_t pixel) {
      if (last[pixel] == i + 1) return;  // by another polygon of the object
      map.ids[pixel] = last[pixel] != 0 || object.crowd ? kIgnoredPixel : object.id;
      last[pixel] = i + 1;
    };
    try {
      for (const RunLengths& mask : masks_of(object, height, width)) for_each_pixel(mask, take);
    } catch (const Error& error) {
      throw Error(object.place + ": segmentation: " + error.what());
    }
  }
  return map;
}

}  // namespace gpunn::data
