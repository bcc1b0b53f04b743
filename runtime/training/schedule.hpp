#pragma once

#include <gpunn/experiment.hpp>

#include <cstdint>
#include <vector>

namespace gpunn::training {

// The learning rate of every step of a training, for the device table that TABLE_LOAD reads.
std::vector<float> learning_rates(const Experiment& experiment, int64_t steps_per_epoch, int64_t total_steps);

}  // namespace gpunn::training
