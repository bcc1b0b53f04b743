#pragma once

#include <gpunn/damaged.hpp>
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

// Returns the number of the class called `text`. A number is accepted if no class has that name. Throws Error(usage),
// with the nearest name, if there is no such class.
GPUNN_API int64_t find_class(const ModelInfo& info, std::string_view text);

// PNG files of a map: alone, where brighter means more, and over the image as the model takes it, u8[C, H, W]. Both are
// enlarged by a whole number if the image has fewer than `least_side` rows or columns. Throws Error(usage) if the map
// and the image differ in size.
inline constexpr int64_t kLeastSideOfMap = 224;
GPUNN_API std::string heatmap_png(const Explanation& explanation, int64_t least_side = kLeastSideOfMap);
GPUNN_API std::string overlay_png(const Explanation& explanation, std::span<const uint8_t> image,
                                  int64_t least_side = kLeastSideOfMap);

// Which images explain() explains, for which class, and where pictures go.
struct ExplainRequest {
  std::vector<std::filesystem::path> inputs = {};  // images, and folders of them
  std::string class_text = {};                     // class name or number; empty: the predicted class
  std::string layer = {};                          // as in ExplainOptions
  ExplainMethod method = ExplainMethod::gradcam;
  // PNG files for a single image, else folders; empty: not written.
  std::filesystem::path overlay = {}, heatmap = {};
  Damaged damaged = Damaged::error;
  DamagedListener on_damaged = {};  // without it, Damaged::error throws once all others are answered
};

// An explained image, and the pictures that were written; empty paths: none.
struct ExplainedImage {
  std::filesystem::path from, overlay, heatmap;
  Explanation explanation;
};

// Explains images by a trained model and writes the requested pictures. Throws Error: usage if the model takes no
// images, lacks the class or layer, or files would replace one another; missing if an image does not exist.
GPUNN_API std::vector<ExplainedImage> explain(const TrainedModel& model, const ExplainRequest& request);

}  // namespace gpunn
