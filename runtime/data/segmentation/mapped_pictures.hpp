#pragma once

#include <gpunn/data.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/images/image.hpp"
#include "data/segmentation/coco_masks.hpp"
#include "data/segmentation/colour_table.hpp"
#include "data/segmentation/label_map.hpp"

namespace gpunn::data {

// A picture, and where its map is: in a file, or drawn from the objects of an annotation.
struct MappedPicture {
  std::filesystem::path picture = {}, map = {};
  const MaskedImage* objects = nullptr;
};

// The pictures of segmentation_folder and their maps, as the files have them.
class MappedPictures {
 public:
  // Finds them. Throws Error as find_map_files() and read_coco_masks().
  explicit MappedPictures(const DataConfig& config);
  MappedPictures(const MappedPictures&) = delete;
  MappedPictures& operator=(const MappedPictures&) = delete;

  std::vector<MappedPicture> train, validation, test;
  MaskedImages train_objects, test_objects;  // that the pictures refer to
  std::vector<std::string> notes;

  std::array<std::pair<const std::vector<MappedPicture>*, Split Dataset::*>, 3> all() const {
    return {{{&train, &Dataset::train}, {&validation, &Dataset::validation}, {&test, &Dataset::test}}};
  }
  // By the number that a row of the data set has in its field kFileNumbersField.
  const MappedPicture& picture(int64_t number) const;
  const ColourTable* colours() const { return colours_ ? &*colours_ : nullptr; }

  // The map with the ids of its file. `sides` are the picture's, which masks of objects need. Throws Error if the map
  // has others.
  LabelMap map_of(const MappedPicture& one, const std::optional<ImageSides>& sides) const;
  // The class of each id in maps, kIgnoredPixel for others; `target` is the field of the data set.
  std::array<uint8_t, 256> classes_of_ids(const Field& target) const;

 private:
  std::optional<ColourTable> colours_;
  bool has_objects_ = false;
};

ImageSides sides_of(const std::filesystem::path& picture);

}  // namespace gpunn::data
