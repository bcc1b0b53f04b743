// COCO's annotations: images, categories, and boxes as [x, y, width, height].
#include <gpunn/error.hpp>

#include <algorithm>
#include <map>
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

// A member of one of the file's lists, and how messages call it: "instances.json: annotations[3]".
class Entry {
 public:
  Entry(const json& value, std::string where) : value_(value), where_(std::move(where)) {
    if (!value.is_object()) fail("expected an object, found " + std::string(value.type_name()));
  }
  int64_t id(const char* key) const {
    const json& found = member(key);
    if (!found.is_number_integer()) fail(std::string(key) + ": expected a whole number, found " + found.dump());
    return found.get<int64_t>();
  }
  std::string text(const char* key) const {
    const json& found = member(key);
    if (!found.is_string()) fail(std::string(key) + ": expected a text, found " + found.dump());
    return found.get<std::string>();
  }
  double number(const char* key, double otherwise) const {
    const auto found = value_.find(key);
    return found != value_.end() && found->is_number() ? found->get<double>() : otherwise;
  }
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

}  // namespace

Annotations read_coco(const fs::path& file, const fs::path& images) {
  json root;
  try {
    root = json::parse(files::read_text(file, kMostJsonBytes));
  } catch (const json::exception& error) {  // a number beyond f64 is no parse_error
    throw Error(file.string() + ": no sound JSON: " + error.what());
  }
  if (!root.is_object()) throw Error(file.string() + ": expected an object of images, annotations and categories");
  Annotations result;
  std::map<int64_t, std::string> categories;
  for_each_entry(root, "categories", file, [&](const Entry& one) {
    const int64_t id = one.id("id");
    if (!categories.emplace(id, one.text("name")).second) one.fail("the id " + std::to_string(id) + " is there twice");
  });
  for (const auto& [id, name] : categories) result.classes.push_back(name);
  std::map<int64_t, std::size_t> places;
  std::vector<std::string> missing;
  for_each_entry(root, "images", file, [&](const Entry& one) {
    const std::string name = one.text("file_name");
    const int64_t id = one.id("id");
    if (!places.emplace(id, result.images.size()).second) one.fail("the id " + std::to_string(id) + " is there twice");
    if (!files::is_file(images / name)) missing.push_back(name);
    result.images.push_back({.file = images / name,
                             .place = file.string() + ": image " + std::to_string(id),
                             .width = static_cast<int64_t>(one.number("width", 0)),
                             .height = static_cast<int64_t>(one.number("height", 0))});
  });
  int64_t without_image = 0;
  for_each_entry(root, "annotations", file, [&](const Entry& one) {
    const auto category = categories.find(one.id("category_id"));
    if (category == categories.end()) {
      one.fail("category_id " + std::to_string(one.id("category_id")) + " is none of the categories");
    }
    const auto place = places.find(one.id("image_id"));
    if (place == places.end()) {
      ++without_image;
      return;
    }
    result.images[place->second].boxes.push_back({.box = one.box(),
                                                  .category = category->second,
                                                  .difficult = false,
                                                  .crowd = one.number("iscrowd", 0) == 1,
                                                  .area = one.number("area", 0)});
  });
  std::erase_if(result.images, [](const AnnotatedImage& image) { return !files::is_file(image.file); });
  if (!missing.empty()) {
    result.notes.push_back(named_count(missing, "image is not in " + images.string() + " and left out",
                                       "images are not in " + images.string() + " and left out"));
  }
  if (without_image > 0) {
    result.notes.push_back(std::to_string(without_image) + " annotations are of images that " +
                           file.filename().string() + " does not list");
  }
  return result;
}

}  // namespace gpunn::data
