#pragma once

#include <gpunn/export.h>
#include <gpunn/model.hpp>
#include <gpunn/training.hpp>

#include <filesystem>
#include <span>

namespace gpunn {

// Writes the image as PNG with the boxes drawn on it, each with its class and score in percent. Those of a lower score
// than `least_score` are left out. Throws Error where the image can't be read or the file can't be written.
GPUNN_API void write_with_boxes(const std::filesystem::path& image, std::span<const DetectedBox> boxes,
                                const std::filesystem::path& to, double least_score = 0.3);

// Writes the boxes as COCO's evaluators read results: a list of image_id, category_id from 1 on, bbox [x, y, width,
// height], score. An image is known by the number that its file is called by, else by the file's name.
GPUNN_API void write_coco_results(std::span<const Prediction> predictions, const std::filesystem::path& file);

}  // namespace gpunn
