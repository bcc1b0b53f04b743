#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/folders/folder_parts.hpp"

namespace gpunn::data {

struct LabelledFile {
  std::filesystem::path file;
  int32_t label = 0;
};

struct FolderScan {
  std::vector<std::string> classes;  // the names of the classes' folders, sorted
  // Each class in turn, so that any first rows hold all classes alike.
  std::vector<LabelledFile> train, validation, test;
  std::vector<std::string> notes;  // files that are no images
};

// By its ending: .png, .jpg, .jpeg, .pgm, .ppm or .pnm.
bool is_image_name(const std::filesystem::path& file);

// The images in a folder and its subfolders, sorted, without those in the folders `apart`. Skips hidden files and does
// not follow links to folders. Throws Error(missing) if the folder can't be listed.
std::vector<std::filesystem::path> images_beneath(const std::filesystem::path& folder,
                                                  const std::vector<std::filesystem::path>& apart = {});

// Finds images by their endings in a folder for each class of each part. Skips hidden files and does not follow links
// to folders. Throws Error if there are no classes, a class has no images, or another part has a class that the
// training part lacks.
FolderScan scan_image_folder(const PartFolders& parts);

}  // namespace gpunn::data
