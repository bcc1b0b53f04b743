#pragma once

#include <gpunn/explanation.hpp>
#include <gpunn/export.h>
#include <gpunn/model_info.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// The class that `text` stands for: its name or, where no class has that name, its number. Throws Error(usage), with
// the nearest name, where there is none.
GPUNN_API int64_t find_class(const ModelInfo& info, std::string_view text);

// PNG files of a map: alone, in colours of which brighter is more, and over the image as the model takes it, u8[C, H,
// W]. Both are enlarged by a whole number where the image has less than `least_side` rows or columns. Throws
// Error(usage) where the image has another size than the map.
inline constexpr int64_t kLeastSideOfMap = 224;
GPUNN_API std::string heatmap_png(const Explanation& explanation, int64_t least_side = kLeastSideOfMap);
GPUNN_API std::string overlay_png(const Explanation& explanation, std::span<const uint8_t> image,
                                  int64_t least_side = kLeastSideOfMap);

// Which images explain() explains, for which class, and where pictures go.
struct ExplainRequest {
  std::vector<std::filesystem::path> inputs = {};  // images, and folders of them
  std::string class_text = {};                     // as find_class() takes it; empty: the class that the model predicts
  std::string layer = {};                          // as ExplainOptions has it
  ExplainMethod method = ExplainMethod::gradcam;
  // PNG files for a single image, else folders; empty: not written.
  std::filesystem::path overlay = {}, heatmap = {};
};

// One image that was explained, and the pictures that were written; empty paths: none.
struct ExplainedImage {
  std::filesystem::path from, overlay, heatmap;
  Explanation explanation;
};

// Explains images by a trained model and writes the pictures that are asked for. Throws Error: usage where the model
// takes no images, has no such class or layer, or files would replace one another; missing where an image is not there.
GPUNN_API std::vector<ExplainedImage> explain(const TrainedModel& model, const ExplainRequest& request);

}  // namespace gpunn
