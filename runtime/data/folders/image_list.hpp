#pragma once

#include <gpunn/experiment.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/tables/target_columns.hpp"

namespace gpunn::data {

// A table that lists images in its first column, and in others their targets and numbers that models take.
struct ImageList {
  std::vector<std::string> columns;
  std::vector<std::filesystem::path> files;
  std::unique_ptr<fields::CellReader> targets, inputs, weights;  // `inputs`, `weights`: null if there are none
};

// Files are relative to `folder`. Throws Error, with the line, if one is listed twice, and Error(missing) with all that
// do not exist.
ImageList read_image_list(const std::filesystem::path& table, const std::filesystem::path& folder,
                          const ImageFolderSet& form, TargetChoice choice);

}  // namespace gpunn::data
