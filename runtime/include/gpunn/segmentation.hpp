#pragma once

#include <gpunn/export.h>
#include <gpunn/model.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace gpunn {

// The id of pixels without a class: those of a picture that the model did not see.
inline constexpr uint8_t kNoClass = 255;

// Writes the image as PNG with the classes of a map of its size drawn on it, half transparent and with an outline, in
// the colours of PASCAL VOC. Class 0 is not drawn. Throws Error if the image can't be read or the file can't be
// written.
GPUNN_API void write_with_map(const std::filesystem::path& image, const LabelMap& map, const std::filesystem::path& to);

// The pixels of a class as COCO's compressed run lengths, `counts` of a mask of size [height, width].
GPUNN_API std::string run_lengths_of(const LabelMap& map, uint8_t index);

}  // namespace gpunn
