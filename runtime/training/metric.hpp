#pragma once

#include <gpunn/training.hpp>

#include <string_view>

#include "tasks/task.hpp"

namespace gpunn::training {

// What early stopping, the choice of the best checkpoint and reduce_on_plateau go by; can be kUndefined.
double value_of(std::string_view monitor, const EpochReport& epoch);

// The metrics of a task that the phase measures, from the sums of the device. Metrics of rows are undefined.
Scores scores_of(const tasks::Task& task, tasks::Phase phase, const tasks::Accumulated& sums, int64_t outputs);

}  // namespace gpunn::training
