#include <gpunn/detection.hpp>

#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/files.hpp"
#include "data/detection/draw_boxes.hpp"

namespace gpunn {

void write_with_boxes(const std::filesystem::path& image, std::span<const DetectedBox> boxes,
                      const std::filesystem::path& to, double least_score) {
  std::string damage;  // a damaged image has boxes only if it was to be repaired
  data::Image picture = data::read_image_file(image, &damage);
  std::vector<data::ShownBox> shown;
  for (const DetectedBox& box : boxes) {
    if (box.score < least_score) continue;
    shown.push_back(
        {{box.left, box.top, box.right, box.bottom}, fmt::format("{} {:.0f}", box.name, 100 * box.score), box.index});
  }
  data::draw_boxes(picture, shown);
  require_writable(to, {image});
  write_atomically(to, data::encode_png(picture));
}

void write_coco_results(std::span<const Prediction> predictions, const std::filesystem::path& file) {
  constexpr std::size_t kMostDigits = 18;
  nlohmann::json results = nlohmann::json::array();
  for (const Prediction& one : predictions) {
    const std::string stem = std::filesystem::path(one.source).stem().string();
    const bool is_number =
        !stem.empty() && stem.size() <= kMostDigits && stem.find_first_not_of("0123456789") == std::string::npos;
    for (const DetectedBox& box : one.boxes) {
      results.push_back({{"image_id", is_number ? nlohmann::json(std::stoll(stem)) : nlohmann::json(stem)},
                         {"category_id", box.index + 1},
                         {"bbox", {box.left, box.top, box.right - box.left, box.bottom - box.top}},
                         {"score", box.score}});
    }
  }
  require_writable(file);
  write_atomically(file, results.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace gpunn
