#pragma once

#include <gpunn/training.hpp>

#include <string>

namespace gpunn::training {

// A sentence for the end of a run.
std::string summary(const BackendComparison& comparison);

}  // namespace gpunn::training
