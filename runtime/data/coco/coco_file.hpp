// COCO's JSON of annotations: images, categories and annotations, whatever is read of each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/text.hpp"
#include "data/pack/files.hpp"

namespace gpunn::data {

// A member of one of the file's lists, and how messages call it: "instances.json: annotations[3]".
class CocoEntry {
 public:
  // Throws Error if the value is not an object.
  CocoEntry(const nlohmann::json& value, std::string where);
  int64_t id(const char* key) const;
  const nlohmann::json& image_id(const char* key) const;  // a number or a string
  std::string text(const char* key) const;
  std::optional<double> number(const char* key) const;
  bool flag(const char* key) const;  // 1 or true
  std::string own_id() const;        // of an annotation, as JSON; empty without one
  bool has_id_zero() const { return number("id") == 0.0; }
  // Throws Error if there is no such member.
  const nlohmann::json& member(const char* key) const;
  const std::string& where() const { return where_; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const nlohmann::json& value_;
  std::string where_;
};

// An image that the file lists.
struct CocoImage {
  std::string name;               // file_name
  std::string id;                 // as JSON
  int64_t width = 0, height = 0;  // 0: the file does not say
  int64_t order = 0;              // the place of the id among the sorted ids
};

class CocoFile {
 public:
  // Reads the whole file. Throws Error, with the entry, if it is not sound.
  explicit CocoFile(const std::filesystem::path& file);

  // The names of the categories by id. A name that several ids have gets its id behind it.
  const std::map<int64_t, std::string>& categories() const { return categories_; }
  const std::vector<CocoImage>& images() const { return images_; }
  // Calls visit(annotation, category id, number of its image) for each annotation of a listed image. Returns the number
  // of annotations of other images.
  using Visit = std::function<void(const CocoEntry& annotation, int64_t category, std::size_t image)>;
  int64_t each_annotation(const Visit& visit) const;

 private:
  void each_entry(const char* list, const std::function<void(const CocoEntry&)>& visit) const;
  void read_categories();
  void read_images();

  std::filesystem::path file_;
  std::shared_ptr<const nlohmann::json> root_;
  std::map<int64_t, std::string> categories_;
  std::vector<CocoImage> images_;
  std::shared_ptr<const std::map<nlohmann::json, std::size_t>> places_;  // of images by id: numbers by value
};

// Removes the images whose `file` is not there, and adds a note of them. The files are in `folder`.
template <class Image>
void leave_out_missing(std::vector<Image>& images, const std::filesystem::path& folder,
                       std::vector<std::string>& notes) {
  std::vector<std::string> missing;
  std::erase_if(images, [&](const Image& image) {
    if (files::is_file(image.file)) return false;
    missing.push_back(image.file.lexically_relative(folder).string());
    return true;
  });
  if (missing.empty()) return;
  notes.push_back(named_count(missing, "image is not in " + folder.string() + " and left out",
                              "images are not in " + folder.string() + " and left out"));
}

// "12 annotations are of images that instances.json does not list"; empty for none.
std::string unlisted_note(int64_t count, const std::filesystem::path& file);

}  // namespace gpunn::data
