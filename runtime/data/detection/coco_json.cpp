// COCO's annotations: images, categories, and boxes as [x, y, width, height].
#include <gpunn/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "data/detection/annotations.hpp"
#include "data/pack/files.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t kMostJsonBytes = std::size_t{4} << 30;
constexpr uint64_t kLargestId = std::numeric_limits<int64_t>::max();

// A member of one of the file's lists, and how messages call it: "instances.json: annotations[3]".
class Entry {
 public:
  Entry(const json& value, std::string where) : value_(value), where_(std::move(where)) {
    if (!value.is_object()) fail("expected an object, found " + std::string(value.type_name()));
  }
  int64_t id(const char* key) const {
    const json& found = member(key);
    // A float that is whole, as tables write ids.
    constexpr double kMostExact = 1LL << 53;
    if (found.is_number_float()) {
      const double value = found.get<double>();
      if (std::trunc(value) == value && std::abs(value) <= kMostExact) return static_cast<int64_t>(value);
    }
    const bool fits = found.is_number_integer() && (!found.is_number_unsigned() || found.get<uint64_t>() <= kLargestId);
    if (!fits) fail(std::string(key) + ": expected a whole number of 64 bits, found " + found.dump());
    return found.get<int64_t>();
  }
  // A number or a string.
  const json& image_id(const char* key) const {
    const json& found = member(key);
    if (!found.is_number() && !found.is_string()) {
      fail(std::string(key) + ": expected a number or a string, found " + found.dump());
    }
    return found;
  }
  std::string text(const char* key) const {
    const json& found = member(key);
    if (!found.is_string()) fail(std::string(key) + ": expected a text, found " + found.dump());
    return found.get<std::string>();
  }
  std::optional<double> number(const char* key) const {
    const auto found = value_.find(key);
    return found != value_.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
  }
  // 1 or true.
  bool flag(const char* key) const {
    const auto found = value_.find(key);
    if (found != value_.end() && found->is_boolean()) return found->get<bool>();
    return number(key).value_or(0) != 0;
  }
  // The id of an annotation, as JSON; empty without one.
  std::string own_id() const {
    const auto found = value_.find("id");
    return found == value_.end() ? "" : found->dump(-1, ' ', false, json::error_handler_t::replace);
  }
  bool has_id_zero() const { return number("id") == 0.0; }
  tasks::Box box() const {
    const json& b = member("bbox");
    if (!b.is_array() || b.size() != 4 || !std::ranges::all_of(b, [](const json& x) { return x.is_number(); })) {
      fail("bbox: expected [x, y, width, height], found " + b.dump());
    }
    const double x = b[0], y = b[1];
    return {x, y, x + b[2].get<double>(), y + b[3].get<double>()};
  }
  [[noreturn]] void fail(const std::string& what) const { throw Error(where_ + ": " + what); }

 private:
  const json& member(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end()) fail("'" + std::string(key) + "' is missing");
    return *found;
  }
  const json& value_;
  std::string where_;
};

// Calls visit(entry) for each member of a list of the file.
template <class Visit>
void for_each_entry(const json& root, const char* list, const fs::path& file, Visit visit) {
  const auto found = root.find(list);
  if (found == root.end() || !found->is_array()) {
    throw Error(file.string() + ": no list '" + list +
                "'; expected annotations of COCO: images, annotations, categories");
  }
  for (std::size_t i = 0; i < found->size(); ++i) {
    visit(Entry((*found)[i], file.string() + ": " + list + "[" + std::to_string(i) + "]"));
  }
}

json parsed(const fs::path& file) {
  json root;
  try {
    root = json::parse(files::read_text(file, kMostJsonBytes));
  } catch (const json::exception& error) {  // a number beyond f64 is no parse_error
    throw Error(file.string() + ": no sound JSON: " + error.what());
  }
  if (!root.is_object()) throw Error(file.string() + ": expected an object of images, annotations and categories");
  return root;
}

// The names of the categories by id. A name that several ids have gets its id behind it.
std::map<int64_t, std::string> categories_of(const json& root, const fs::path& file) {
  std::map<int64_t, std::string> categories;
  std::map<std::string, int64_t> uses;
  for_each_entry(root, "categories", file, [&](const Entry& one) {
    const int64_t id = one.id("id");
    const auto [place, is_new] = categories.emplace(id, one.text("name"));
    if (!is_new) one.fail("the id " + std::to_string(id) + " is there twice");
    ++uses[place->second];
  });
  for (auto& [id, name] : categories) {
    if (uses[name] > 1) name += " (id " + std::to_string(id) + ")";
  }
  return categories;
}

std::string text_of(const json& id) { return id.dump(-1, ' ', false, json::error_handler_t::replace); }

// Counts of what a reader does otherwise than it may expect.
struct Peculiar {
  int64_t without_image = 0, without_area = 0, with_id_zero = 0, with_used_id = 0;

  void tell(Annotations& to, const fs::path& file) const {
    const auto note = [](std::vector<std::string>& notes, int64_t count, const std::string& text) {
      if (count > 0) notes.push_back(std::to_string(count) + text);
    };
    note(to.notes, without_image, " annotations are of images that " + file.filename().string() + " does not list");
    note(to.evaluation_notes, without_area,
         " annotations have no area: the area of their box decides whether they are small or large");
    note(to.evaluation_notes, with_id_zero,
         " annotation has the id 0: pycocotools counts a detection of it as wrong, and so do the figures of an "
         "evaluation. Number annotations from 1");
    note(to.evaluation_notes, with_used_id,
         " annotations have the id of another: pycocotools takes the last of them for all, and its figures differ. "
         "Give each annotation an id of its own");
  }
};

}  // namespace

CocoFileIds read_coco_ids(const fs::path& file) {
  const json root = parsed(file);
  CocoFileIds ids;
  for (const auto& [id, name] : categories_of(root, file)) ids.categories[name] = id;
  for_each_entry(root, "images", file,
                 [&](const Entry& one) { ids.images.emplace(one.text("file_name"), text_of(one.image_id("id"))); });
  return ids;
}

Annotations read_coco(const fs::path& file, const fs::path& images) {
  const json root = parsed(file);
  Annotations result;
  const std::map<int64_t, std::string> categories = categories_of(root, file);
  for (const auto& [id, name] : categories) {
    result.classes.push_back(name);
    result.class_ids.push_back(id);
  }
  std::map<json, std::size_t> places;  // by id: numbers by value, strings by letters
  std::vector<std::string> missing;
  for_each_entry(root, "images", file, [&](const Entry& one) {
    const std::string name = one.text("file_name"), id = text_of(one.image_id("id"));
    if (!places.emplace(one.image_id("id"), result.images.size()).second) one.fail("the id " + id + " is there twice");
    if (!files::is_file(images / name)) missing.push_back(name);
    result.images.push_back({.file = images / name,
                             .place = file.string() + ": image " + id,
                             .width = static_cast<int64_t>(one.number("width").value_or(0)),
                             .height = static_cast<int64_t>(one.number("height").value_or(0)),
                             .id = id});
  });
  int64_t order = 0;
  for (const auto& [id, place] : places) result.images[place].order = order++;
  Peculiar peculiar;
  std::set<std::string> used_ids;
  for_each_entry(root, "annotations", file, [&](const Entry& one) {
    const auto category = categories.find(one.id("category_id"));
    if (category == categories.end()) {
      one.fail("category_id " + std::to_string(one.id("category_id")) + " is none of the categories");
    }
    const auto place = places.find(one.image_id("image_id"));
    if (place == places.end()) {
      ++peculiar.without_image;
      return;
    }
    const NamedBox box{.box = one.box(),
                       .category = category->second,
                       .difficult = false,
                       .crowd = one.flag("iscrowd"),
                       .area = one.number("area"),
                       .has_id_zero = one.has_id_zero()};
    const std::string id = one.own_id();
    peculiar.with_used_id += !id.empty() && !used_ids.insert(id).second;
    peculiar.without_area += !box.area;
    peculiar.with_id_zero += box.has_id_zero;
    result.images[place->second].boxes.push_back(box);
  });
  std::erase_if(result.images, [](const AnnotatedImage& image) { return !files::is_file(image.file); });
  if (!missing.empty()) {
    result.notes.push_back(named_count(missing, "image is not in " + images.string() + " and left out",
                                       "images are not in " + images.string() + " and left out"));
  }
  peculiar.tell(result, file);
  return result;
}

}  // namespace gpunn::data
