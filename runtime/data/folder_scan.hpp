#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

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

// The images in a folder and its subfolders, sorted. Hidden files are passed over; links to folders are not followed.
// Throws Error(missing) where the folder can't be listed.
std::vector<std::filesystem::path> images_beneath(const std::filesystem::path& folder);

// Finds images by their endings beneath a folder for each class: root/CLASS, or
// root/train/CLASS, root/test/CLASS and root/validation/CLASS (also called val or valid). `test_root`, where not empty,
// has the test part's classes instead. Hidden files are passed over; links to folders are not followed. Throws Error
// where there are no classes, a class has no images, or another part has a class that the training part lacks.
FolderScan scan_image_folder(const std::filesystem::path& root, const std::filesystem::path& test_root);

}  // namespace gpunn::data
