#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/registry.hpp"

namespace gpunn::data {

struct LookedIn {
  std::filesystem::path folder;
  std::string why_not;  // empty: the set is here
};

struct Search {
  std::filesystem::path found;  // empty: nowhere
  std::vector<LookedIn> places;
};

// Searches a set in files, in this order: `first` (if not empty) and its subfolders with the set's names,
// $GPUNN_DATA_DIR likewise, the folder of the distribution's package, and the user's cache folder.
Search locate(const DatasetRow& row, const std::filesystem::path& first);

// $XDG_CACHE_HOME/gpunn/<name>, by default ~/.cache/gpunn/<name>. Empty where neither variable is set.
std::filesystem::path cache_folder(const DatasetRow& row);

// "  /data/mnist: no such folder", a line a place.
std::string list_of(const Search& search);

}  // namespace gpunn::data
