// Metrics of images that a model makes of images: rows that have a size of their own each.
#pragma once

#include <array>

#include "data/images/planes.hpp"
#include "tasks/metric.hpp"

namespace gpunn::tasks {

// A single row's images, from 0 to 1. Throws Error if the rows have no sizes of their own.
data::Planes input_image(const EvaluatedRows& row);
data::Planes target_image(const EvaluatedRows& row);
data::Planes predicted_image(const EvaluatedRows& row);
// The input enlarged to the size of the target by bicubic interpolation.
data::Planes bicubic_image(const EvaluatedRows& row);

// PSNR and SSIM of the predictions, and the same of bicubic_image().
std::array<TaskMetric, 4> image_quality();

}  // namespace gpunn::tasks
