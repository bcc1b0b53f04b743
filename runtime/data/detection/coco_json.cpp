// COCO's boxes: [x, y, width, height] of annotations.
#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "data/coco/coco_file.hpp"
#include "data/detection/annotations.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

fields::Box box_of(const CocoEntry& annotation) {
  const json& b = annotation.member("bbox");
  if (!b.is_array() || b.size() != 4 || !std::ranges::all_of(b, [](const json& x) { return x.is_number(); })) {
    annotation.fail("bbox: expected [x, y, width, height], found " + b.dump());
  }
  const double x = b[0], y = b[1];
  return {x, y, x + b[2].get<double>(), y + b[3].get<double>()};
}

// Counts of what a reader does otherwise than it may expect.
struct Peculiar {
  int64_t without_area = 0, with_id_zero = 0, with_used_id = 0;

  void tell(Annotations& to) const {
    const auto note = [&](int64_t count, const std::string& text) {
      if (count > 0) to.evaluation_notes.push_back(std::to_string(count) + text);
    };
    note(without_area, " annotations have no area: the area of their box decides whether they are small or large");
    note(with_id_zero,
         " annotation has the id 0: pycocotools counts a detection of it as wrong, and so do the figures of an "
         "evaluation. Number annotations from 1");
    note(with_used_id,
         " annotations have the id of another: pycocotools takes the last of them for all, and its figures differ. "
         "Give each annotation an id of its own");
  }
};

}  // namespace

CocoFileIds read_coco_ids(const fs::path& file) {
  const CocoFile coco(file);
  CocoFileIds ids;
  for (const auto& [id, name] : coco.categories()) ids.categories[name] = id;
  for (const CocoImage& image : coco.images()) ids.images.emplace(image.name, image.id);
  return ids;
}

Annotations read_coco(const fs::path& file, const fs::path& images) {
  const CocoFile coco(file);
  Annotations result;
  for (const auto& [id, name] : coco.categories()) {
    result.classes.push_back(name);
    result.class_ids.push_back(id);
  }
  for (const CocoImage& image : coco.images()) {
    result.images.push_back({.file = images / image.name,
                             .place = file.string() + ": image " + image.id,
                             .width = image.width,
                             .height = image.height,
                             .id = image.id,
                             .order = image.order});
  }
  Peculiar peculiar;
  std::set<std::string> used_ids;
  const int64_t unlisted = coco.each_annotation([&](const CocoEntry& one, int64_t category, std::size_t image) {
    const NamedBox box{.box = box_of(one),
                       .category = coco.categories().at(category),
                       .difficult = false,
                       .crowd = one.flag("iscrowd"),
                       .area = one.number("area"),
                       .has_id_zero = one.has_id_zero()};
    const std::string id = one.own_id();
    peculiar.with_used_id += !id.empty() && !used_ids.insert(id).second;
    peculiar.without_area += !box.area;
    peculiar.with_id_zero += box.has_id_zero;
    result.images[image].boxes.push_back(box);
  });
  leave_out_missing(result.images, images, result.notes);
  if (unlisted > 0) result.notes.push_back(unlisted_note(unlisted, file));
  peculiar.tell(result);
  return result;
}

}  // namespace gpunn::data
