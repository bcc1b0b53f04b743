#pragma once

#include <gpunn/export.h>

#include <filesystem>
#include <functional>

namespace gpunn {

// Which images of a folder are predicted, and what ends the watch.
struct WatchOptions {
  bool skip_existing = false;  // images that are there before the watch begins are passed over
  int stop = -1;               // a descriptor: the watch ends when it can be read; -1: never
};

// Calls `on_image` for each image (.png, .jpg, .jpeg, .pgm, .ppm, .pnm) that lies in a folder and for each that comes:
// once it is whole, which is when its writer closes it or it is moved there. One that is written anew is told again.
// Subfolders and hidden files are passed over. An exception of `on_image` ends the watch. Throws Error(missing) where
// the folder is not there, or is deleted or moved meanwhile.
GPUNN_API void watch_images(const std::filesystem::path& folder, const WatchOptions& options,
                            const std::function<void(const std::filesystem::path&)>& on_image);

}  // namespace gpunn
