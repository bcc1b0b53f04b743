#include <gpunn/detection.hpp>

#include <string>
#include <vector>

#include <fmt/format.h>

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

}  // namespace gpunn
