#pragma once

#include <gpunn/model.hpp>

#include <chrono>

namespace gpunn::serving {

// Runs batches of zeros, so that the kernels for their numbers of rows are ready before a request comes: 1, the
// largest, 2, 4, 8, ..., then all others, for as long as `budget` lasts. `instances` batches run at the same time, as
// they will. Throws what Model::run throws.
void warm_up(const Model& model, int instances, std::chrono::milliseconds budget);

}  // namespace gpunn::serving
