#pragma once

#include <cstdint>
#include <span>

#include "tasks/detection/boxes.hpp"

namespace gpunn::tasks {

inline constexpr int64_t kDetectionNumbers = 6;  // left, top, right, bottom, score, class

// A row of an evaluation in the pixels of the image's file: its targets, boxes of kBoxNumbers, and what a model found.
DetectionImage detection_image(std::span<const float> targets, std::span<const float> predictions);

}  // namespace gpunn::tasks
