#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/training.hpp>

namespace gpunn::training {

// What early stopping, the choice of the best checkpoint and reduce_on_plateau go by.
double value_of(Metric metric, const EpochReport& epoch);

// Whether `value` is better than `best` by more than min_delta.
bool improves(Metric metric, double value, double best, double min_delta);

}  // namespace gpunn::training
