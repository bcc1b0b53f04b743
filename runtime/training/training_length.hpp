#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>

#include <cstdint>

namespace gpunn::training {

struct TrainingLength {
  int64_t steps_per_epoch = 0;
  int64_t steps = 0;  // of the whole training
};

// Throws Error(usage) if a batch is larger than the training data, or the training is too long.
TrainingLength training_length(const Experiment& experiment, const Dataset& dataset);

}  // namespace gpunn::training
