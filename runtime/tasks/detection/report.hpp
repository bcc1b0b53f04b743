#pragma once

#include <memory>

#include "tasks/report.hpp"

namespace gpunn::tasks {

// COCO's and VOC's figures, curves and confusion of the classes, and the images with the largest loss as they are
// evaluated.
std::unique_ptr<Report> make_detection_report(const ReportInputs& inputs);

}  // namespace gpunn::tasks
