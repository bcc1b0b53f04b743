#pragma once

#include <gpunn/evaluation.hpp>

#include <cstdint>

#include "training/session.hpp"

namespace gpunn::training {

// The test split of data without classes: each target column or label by itself, and the rows with the largest loss, at
// most `worst` of them.
ClassEvalReport evaluate_outputs(Session& session, int64_t worst);

}  // namespace gpunn::training
