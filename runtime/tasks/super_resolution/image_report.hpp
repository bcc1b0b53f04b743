#pragma once

#include <memory>
#include <span>

#include "tasks/metric.hpp"
#include "tasks/report.hpp"

namespace gpunn::tasks {

// Figures of each image, the first images as they are enlarged, and the means of the figures.
std::unique_ptr<Report> make_image_report(const ReportInputs& inputs, std::span<const TaskMetric> metrics);

}  // namespace gpunn::tasks
