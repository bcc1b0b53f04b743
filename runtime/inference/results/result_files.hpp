#pragma once

#include <filesystem>
#include <vector>

namespace gpunn::inference {

// An image file, and what its result is called in a folder of results.
struct ImageFile {
  std::filesystem::path file, name;
};

// The images that `inputs` name: files, and what lies beneath folders. Throws Error(missing) for a folder without any.
std::vector<ImageFile> images_in(const std::vector<std::filesystem::path>& inputs);

// Where the PNG file of each image is written: at `to` itself where `inputs` are one file and `to` is no folder, else
// in the folder `to`. Throws Error(usage) where a single file does not end in .png.
std::vector<std::filesystem::path> result_files(const std::vector<std::filesystem::path>& inputs,
                                                const std::vector<ImageFile>& images, const std::filesystem::path& to);

// Throws Error(usage) where a result would replace an image that is read or another result. `option` is what the user
// gives otherwise: "--to".
void require_own_places(const std::vector<ImageFile>& images, const std::vector<std::filesystem::path>& results,
                        const char* option);

}  // namespace gpunn::inference
