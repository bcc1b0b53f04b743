#pragma once

#include <gpunn/evaluation.hpp>
#include <gpunn/export.h>
#include <gpunn/model.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace gpunn {

// The id of pixels without a class: those of a picture that the model did not see.
inline constexpr uint8_t kNoClass = 255;

// The class of each pixel of an image file. The image is scaled as samples of the model's data are, but it is not cut:
// tiles cover it. A pixel has its class from a tile whose border is at least the overlap away, if that is not a border
// of the image. The last tiles of rows and columns are moved inwards. An image that is smaller than a tile is mirrored
// to fill it. Each pixel of the file has the class of the nearest pixel of the scaled image. Throws Error(usage) if the
// model is of another task or the overlap is too large, and Error if the file is not an image.
GPUNN_API LabelMap segment_image(const Model& model, const std::filesystem::path& image, const FullSize& options = {});

// As evaluate_classes(), on the files of the test data in their own size, whose maps segment_image() makes. The loss is
// kUndefined. Throws Error(usage) if the data set does not have such files.
GPUNN_API ClassEvalReport evaluate_full_size(const TrainedModel& model, const FullSize& options = {},
                                             TrainingListener* listener = nullptr);

// Writes the image as PNG with the classes of a map of its size drawn on it, half transparent and with an outline, in
// the colours of PASCAL VOC. Class 0 is not drawn. Throws Error if the image can't be read or the file can't be
// written.
GPUNN_API void write_with_map(const std::filesystem::path& image, const LabelMap& map, const std::filesystem::path& to);

// The pixels of a class as COCO's compressed run lengths, `counts` of a mask of size [height, width].
GPUNN_API std::string run_lengths_of(const LabelMap& map, uint8_t index);

}  // namespace gpunn
