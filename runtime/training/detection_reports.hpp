#pragma once

#include <gpunn/evaluation.hpp>

#include <cstdint>

#include "training/session.hpp"

namespace gpunn::training {

// A detector on the test data: figures, curves and confusion of classes, and at most `worst` images with the largest
// loss, as they are evaluated.
ClassEvalReport evaluate_detections(Session& session, int64_t worst);

}  // namespace gpunn::training
