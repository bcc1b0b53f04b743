#pragma once

#include <gpunn/export.h>
#include <gpunn/training.hpp>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace gpunn {

// Which images are enlarged, and where they go.
struct UpscaleRequest {
  std::vector<std::filesystem::path> inputs;  // images, and folders of them
  std::filesystem::path to;                   // a PNG file for a single image, else a folder
  int64_t tile = 512;    // rows and columns that the model gets at once; larger images go in parts; 0: any size at once
  int64_t overlap = 32;  // rows and columns on each side of a part that are computed and not used: its surroundings
  bool compare = false;  // beside each result a picture of bicubic and the result, side by side: NAME.compare.png
};

// An image that was enlarged.
struct UpscaledImage {
  std::filesystem::path from, to;
  int64_t height = 0, width = 0;  // of the result
  int64_t tiles = 0;
  double seconds = 0;  // in the model
};

// Enlarges images by a model of the task super_resolution, and writes them as PNG. Grey images stay grey, and how
// opaque pixels are is enlarged by bicubic. Throws Error: usage where the model is of another task or files would
// replace one another, missing where an image is not there.
GPUNN_API std::vector<UpscaledImage> upscale(const TrainedModel& model, const UpscaleRequest& request);

}  // namespace gpunn
