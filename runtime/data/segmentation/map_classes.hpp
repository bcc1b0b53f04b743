#pragma once

#include <gpunn/data.hpp>

#include <array>
#include <bitset>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/segmentation/colour_table.hpp"

namespace gpunn::data {

// The classes that the ids in label maps stand for.
struct MapClasses {
  static constexpr int16_t kUnknown = -1;

  std::vector<std::string> names;
  std::vector<int64_t> ids;              // the id in the files of each class
  std::array<int16_t, 256> class_of_id;  // kIgnoredPixel: none; kUnknown: an id that files must not have

  // Ids 0, 1, ... of these names; `ids` are what the classes are called outside.
  static MapClasses of(std::vector<std::string> names, std::vector<int64_t> ids);
  // Whether the ids in the files are the numbers of the classes.
  bool are_ids() const;
  // Throws Error if a file uses an id that is not of a class.
  void require(const std::bitset<256>& used, const std::filesystem::path& file) const;
};

// Names are those of the settings: of the table of colours, a list, or a file; else the ids up to the largest that is
// used. A class that is ignored has no place among them. Where all maps have no ids but 0 and 255, 255 is class 1:
// masks are often written so.
MapClasses classes_of_maps(const DataConfig& config, const SegmentationSet& settings, const ColourTable* colours,
                           const std::bitset<256>& used, std::vector<std::string>& notes);

// The field of label maps of this size, which models learn.
Field map_field(std::vector<std::string> names, int64_t height, int64_t width);

}  // namespace gpunn::data
