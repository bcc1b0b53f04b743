#pragma once

#include <cstddef>
#include <cstdint>

#include "tasks/detection/detections.hpp"
#include "tasks/evaluated_rows.hpp"

namespace gpunn::tasks {

inline constexpr int64_t kDetectionNumbers = 6;  // left, top, right, bottom, score, class

// A row of an evaluation in the pixels of the image's file: its objects and what a model found. If the data has no
// objects as the files have them (kObjectsField), the objects are the targets.
DetectionImage detection_image(const EvaluatedRows& rows, std::size_t row);

// Pixels of the sample for each pixel of the image.
double image_scale(const EvaluatedRows& rows, std::size_t row);

}  // namespace gpunn::tasks
