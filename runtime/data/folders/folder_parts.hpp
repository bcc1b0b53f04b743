#pragma once

#include <gpunn/data_config.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::data {

enum class Part { train, validation, test };

// The part of a data set that a folder's name means. `whole`: all words of the name say so, as in "Train",
// "images-test" or "val2017"; else one of its words, as in "seg_train" or "train_station".
// `rest`: the other words, in small letters: "station".
struct PartName {
  Part part;
  bool whole = false;
  std::string rest = {};
};
std::optional<PartName> part_named(std::string_view name);

// The contents of a folder of samples: a folder for each class, or images wherever they lie.
enum class Contents { classes, images };

// The folders of the parts; an empty path: there is no such part.
struct PartFolders {
  std::filesystem::path root = {};  // data.path without a slash at its end
  std::filesystem::path train = {}, validation = {}, test = {};
  std::vector<std::filesystem::path> apart = {};  // beneath `train`, and not of it
  std::vector<std::string> notes = {};            // for the user: what was decided
  bool recognised = false;                        // by the names of folders beneath data.path
};

// Decides what the folders beneath data.path mean: by the keys data.train_folder, data.validation_folder and
// data.test_folder, else by their names. Goes into a folder that is alone in another one. Throws Error(usage), with the
// keys that decide, if the names can be read in two ways, and Error(missing) if a folder is not there.
PartFolders part_folders(const DataConfig& config, Contents contents);

}  // namespace gpunn::data
