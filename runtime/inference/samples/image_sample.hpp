#pragma once

#include <gpunn/model.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gpunn::inference {

// An image as a sample of a model, and the pixels that its file shows.
struct ImageSample {
  std::vector<uint8_t> values;
  int64_t height = 0, width = 0;
};

// As gpunn::read_image() of the bytes of a file.
ImageSample image_sample(std::span<const uint8_t> bytes, const std::string& name, const Field& input,
                         int64_t most_pixels);
// Of a file. `damage` as in data::decode_image().
ImageSample image_sample(const std::filesystem::path& file, const Field& input, std::string* damage);

// From pixels of the sample to those of the image that it was made of, clipped to it.
std::vector<DetectedBox> boxes_on_image(std::vector<DetectedBox> boxes, int64_t height, int64_t width,
                                        const Field& input);
// Likewise, by the nearest pixel. Pixels of the image that the sample does not show are kNoClass.
LabelMap map_on_image(LabelMap map, int64_t height, int64_t width, const Field& input);

}  // namespace gpunn::inference
