#include "data/coco/coco_file.hpp"

#include <gpunn/error.hpp>

#include <cmath>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "data/pack/files.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t kMostJsonBytes = std::size_t{4} << 30;
constexpr uint64_t kLargestId = std::numeric_limits<int64_t>::max();

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

std::string text_of(const json& id) { return id.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

CocoEntry::CocoEntry(const json& value, std::string where) : value_(value), where_(std::move(where)) {
  if (!value.is_object()) fail("expected an object, found " + std::string(value.type_name()));
}

int64_t CocoEntry::id(const char* key) const {
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

const json& CocoEntry::image_id(const char* key) const {
  const json& found = member(key);
  if (!found.is_number() && !found.is_string()) {
    fail(std::string(key) + ": expected a number or a string, found " + found.dump());
  }
  return found;
}

std::string CocoEntry::text(const char* key) const {
  const json& found = member(key);
  if (!found.is_string()) fail(std::string(key) + ": expected a text, found " + found.dump());
  return found.get<std::string>();
}

std::optional<double> CocoEntry::number(const char* key) const {
  const auto found = value_.find(key);
  return found != value_.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

bool CocoEntry::flag(const char* key) const {
  const auto found = value_.find(key);
  if (found != value_.end() && found->is_boolean()) return found->get<bool>();
  return number(key).value_or(0) != 0;
}

std::string CocoEntry::own_id() const {
  const auto found = value_.find("id");
  return found == value_.end() ? "" : text_of(*found);
}

const json& CocoEntry::member(const char* key) const {
  const auto found = value_.find(key);
  if (found == value_.end()) fail("'" + std::string(key) + "' is missing");
  return *found;
}

void CocoEntry::fail(const std::string& what) const { throw Error(where_ + ": " + what); }

CocoFile::CocoFile(const fs::path& file) : file_(file), root_(std::make_shared<const json>(parsed(file))) {
  read_categories();
  read_images();
}

void CocoFile::each_entry(const char* list, const std::function<void(const CocoEntry&)>& visit) const {
  const auto found = root_->find(list);
  if (found == root_->end() || !found->is_array()) {
    throw Error(file_.string() + ": no list '" + list +
                "'; expected annotations of COCO: images, annotations, categories");
  }
  for (std::size_t i = 0; i < found->size(); ++i) {
    visit(CocoEntry((*found)[i], file_.string() + ": " + list + "[" + std::to_string(i) + "]"));
  }
}

void CocoFile::read_categories() {
  std::map<std::string, int64_t> uses;
  each_entry("categories", [&](const CocoEntry& one) {
    const int64_t id = one.id("id");
    const auto [place, is_new] = categories_.emplace(id, one.text("name"));
    if (!is_new) one.fail("the id " + std::to_string(id) + " is there twice");
    ++uses[place->second];
  });
  for (auto& [id, name] : categories_) {
    if (uses[name] > 1) name += " (id " + std::to_string(id) + ")";
  }
}

void CocoFile::read_images() {
  std::map<json, std::size_t> places;
  each_entry("images", [&](const CocoEntry& one) {
    const std::string name = one.text("file_name"), id = text_of(one.image_id("id"));
    if (!places.emplace(one.image_id("id"), images_.size()).second) one.fail("the id " + id + " is there twice");
    images_.push_back({.name = name,
                       .id = id,
                       .width = static_cast<int64_t>(one.number("width").value_or(0)),
                       .height = static_cast<int64_t>(one.number("height").value_or(0))});
  });
  int64_t order = 0;
  for (const auto& [id, place] : places) images_[place].order = order++;
  places_ = std::make_shared<const std::map<json, std::size_t>>(std::move(places));
}

int64_t CocoFile::each_annotation(const Visit& visit) const {
  int64_t unlisted = 0;
  each_entry("annotations", [&](const CocoEntry& one) {
    const int64_t category = one.id("category_id");
    if (!categories_.contains(category)) {
      one.fail("category_id " + std::to_string(category) + " is none of the categories");
    }
    const auto place = places_->find(one.image_id("image_id"));
    if (place == places_->end()) {
      ++unlisted;
    } else {
      visit(one, category, place->second);
    }
  });
  return unlisted;
}

std::string unlisted_note(int64_t count, const fs::path& file) {
  if (count == 0) return "";
  return std::to_string(count) + " annotations are of images that " + file.filename().string() + " does not list";
}

}  // namespace gpunn::data
