#pragma once

#include <gpunn/export.h>

#include <filesystem>
#include <functional>

namespace gpunn {

// Which images of a folder are predicted, and what ends the watch.
struct WatchOptions {
  bool skip_existing = false;  // skip images that exist before the watch begins
  int stop = -1;               // a file descriptor: the watch ends when it becomes readable; -1: never
};

// Calls `on_image` for each image (.png, .jpg, .jpeg, .pgm, .ppm, .pnm) in a folder, and for each new one as soon as it
// is complete: when its writer closes it, or when it is moved into the folder. A rewritten image is reported again.
// Subfolders and hidden files are skipped. An exception of `on_image` ends the watch. Throws Error(missing) if the
// folder does not exist, or is deleted or moved while it is watched.
GPUNN_API void watch_images(const std::filesystem::path& folder, const WatchOptions& options,
                            const std::function<void(const std::filesystem::path&)>& on_image);

}  // namespace gpunn
