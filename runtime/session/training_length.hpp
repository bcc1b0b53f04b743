#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>

#include <cstdint>

#include "storage/checkpoint.hpp"

namespace gpunn::training {

// What was done before a session. The three are counted: earlier epochs may have had other lengths.
struct Origin {
  int64_t step = 0;
  int64_t epoch = 0;     // whole epochs, and epochs that were left unfinished
  int64_t in_epoch = 0;  // steps of the epoch at hand
};

Origin origin_of(const storage::Checkpoint& checkpoint);

// Steps count from 0, with those before the session.
struct TrainingLength {
  int64_t steps_per_epoch = 0;
  int64_t steps = 0;  // of the whole training
  int64_t first = 0;  // of the session
  int64_t shift = 0;  // step t is step t + shift of epochs that all have steps_per_epoch

  int64_t epoch_of(int64_t step) const { return (step + shift) / steps_per_epoch; }
  int64_t in_epoch(int64_t step) const { return (step + shift) % steps_per_epoch; }
  int64_t end_of_epoch(int64_t step) const { return step - in_epoch(step) + steps_per_epoch; }
};

// Throws Error(usage) if a batch is larger than the training data, or the training is too long.
TrainingLength training_length(const Experiment& experiment, const Dataset& dataset, const Origin& origin = {});

}  // namespace gpunn::training
