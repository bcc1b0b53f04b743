#pragma once

#include <gpunn/data.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "config/given_keys.hpp"
#include "config/key_builders.hpp"
#include "config/kinds.hpp"

namespace gpunn::data {

// A file of a published data set. If mirrors pack it differently, its digest is of the unpacked content.
struct RemoteFile {
  enum class Digest { of_content, of_file };

  std::string name;    // beneath each mirror, and in the cache folder
  uint64_t bytes = 0;  // exact, of what the digest is of
  std::string sha256;  // lower-case hexadecimal
  Digest digest = Digest::of_content;
};

// The origin of a data set.
enum class Origin {
  published,  // files that are looked for, and downloaded
  synthetic,  // made by the program
  user,       // files of the user's own at data.path
  memory,     // arrays of a program that calls gpunn
};

// Sizes of a set as it is published or made: samples of each part, and its other fields.
struct DatasetSizes {
  TensorType train, test;
  Field target;
  std::vector<Field> inputs = {};  // besides the samples
};

// Everything that the program knows about a data set. A new one is a file that fills this row, and a line in
// registry(). If it has its own settings, it also needs a struct in gpunn/data_config.hpp.
struct DatasetRow {
  std::string name;
  std::string description;
  Origin origin = Origin::published;
  std::vector<std::string> folder_names;              // how its folder may be called inside a folder of data sets
  std::vector<std::filesystem::path> system_folders;  // where a distribution's package installs it
  std::vector<std::string> mirrors;                   // URLs ending in '/', the first that serves wins
  std::vector<RemoteFile> files;
  DatasetSizes (*sizes)(const DataConfig& config) = nullptr;  // published and synthetic ones, but for photographs
  // The only kind of field that is learnt from a set whose sizes are those of its images. Empty: what the task wants.
  std::string learnt;
  std::string stand_in;  // a synthetic set of samples of the same shape; empty: there is none

  // The keys that an experiment has for this set only, and the check of their values. nullptr: none.
  config::KindOf<DataConfig> (*keys)() = nullptr;
  void (*check)(const DataConfig& config, const config::GivenKeys& given, config::Diagnostics& found) = nullptr;

  // Published sets. Empty: the folder holds this set; otherwise why not, in a few words.
  std::string (*why_not_in)(const std::filesystem::path& folder) = nullptr;
  Dataset (*read)(const std::filesystem::path& folder, const DataConfig& config) = nullptr;
  // The others.
  Dataset (*make)(const DataConfig& config) = nullptr;
};

const std::vector<DatasetRow>& registry();

template <class Set, class... Keys>
config::KindOf<DataConfig> keys_of_set(Keys... keys) {
  return config::make_kind<Set, DataConfig>({}, std::move(keys)...);
}

// The settings in `config` for a set of this kind; the defaults if it has those of another kind.
template <class Set>
Set settings_for(const DataConfig& config) {
  const Set* set = std::get_if<Set>(&config.kind);
  return set == nullptr ? Set() : *set;
}

// Throws Error(usage), with the nearest names, if there is none.
const DatasetRow& find_dataset(std::string_view name);

}  // namespace gpunn::data
