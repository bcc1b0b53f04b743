#pragma once

#include <gpunn/data_config.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/folders/folder_parts.hpp"

namespace gpunn::data {

struct MapPair {
  std::filesystem::path picture, map;
};

struct MapFiles {
  std::vector<MapPair> train, validation, test;
  std::vector<std::string> notes;  // for the user: what was decided
};

// Finds the pictures below data.path and their label maps.
//
// Lists decide, if there are any: PART.txt in data.path or in ImageSets/Segmentation, where PART names a part. A line
// has a picture and its map, or the name of a picture that has a map. Otherwise folders with files of the same names
// are compared: those with the most different values have the pictures; the maps are PNGs. A folder whose PNGs number
// the objects of each picture from 1 on does not have the maps. A name may have an ending that all names of its folder
// have, such as "_mask". Parts are recognised by the names of the folders above a picture.
//
// Throws Error, with the keys that decide, if no folder or several folders can be the maps.
MapFiles find_map_files(const DataConfig& config, const SegmentationSet& settings);

// The lists of parts in a folder, PART.txt; of several of a part the one with the shortest name: "train" rather than
// "trainval".
std::map<Part, std::filesystem::path> map_lists_in(const std::filesystem::path& folder);
// The pairs of a list; `known` are those that single names may mean. Files are below the list's folder or `root`.
// Throws Error with the line.
std::vector<MapPair> read_map_list(const std::filesystem::path& list, const std::filesystem::path& root,
                                   const std::vector<MapPair>& known);

}  // namespace gpunn::data
