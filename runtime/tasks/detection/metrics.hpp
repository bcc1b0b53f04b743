#pragma once

#include <array>

#include "tasks/metric.hpp"

namespace gpunn::tasks {

// Means over the classes: VOC's average precision at an overlap of 0.5, all points, and COCO's from 0.5 to 0.95.
std::array<TaskMetric, 2> detection_metrics();

}  // namespace gpunn::tasks
