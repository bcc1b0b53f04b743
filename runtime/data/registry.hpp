#pragma once

#include <gpunn/data.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::data {

// A file that a data set is downloaded as. Its digest is of the unpacked content, because mirrors pack differently.
struct RemoteFile {
  std::string name;             // beneath each mirror, and in the cache folder
  uint64_t unpacked_bytes = 0;  // exact
  std::string sha256;           // lower-case hexadecimal
};

// All that the program knows about a data set. A new one is a file that fills in this row, and a line in registry().
struct DatasetRow {
  std::string name;
  std::string description;
  bool synthetic = false;
  std::vector<std::string> folder_names;              // how its folder may be called inside a folder of data sets
  std::vector<std::filesystem::path> system_folders;  // where a distribution's package installs it
  std::vector<std::string> mirrors;                   // URLs ending in '/', the first that serves wins
  std::vector<RemoteFile> files;

  // Sets in files. Empty: the folder holds this set; otherwise why not, in a few words.
  std::string (*why_not_in)(const std::filesystem::path& folder) = nullptr;
  Dataset (*read)(const std::filesystem::path& folder) = nullptr;
  // Synthetic sets.
  Dataset (*make)(const DataConfig& config) = nullptr;
};

const std::vector<DatasetRow>& registry();

// Throws Error(usage) with the nearest names where there is none.
const DatasetRow& find_dataset(std::string_view name);

}  // namespace gpunn::data
