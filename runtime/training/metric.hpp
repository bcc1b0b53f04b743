#pragma once

#include <gpunn/training.hpp>

#include <string_view>

#include "tasks/task.hpp"

namespace gpunn::training {

// What early stopping, the choice of the best checkpoint and reduce_on_plateau go by; can be kUndefined.
double value_of(std::string_view monitor, const EpochReport& epoch);

// A task's metrics of what the device has added up: all that it tells, or those that are kept while training.
enum class Of { evaluation, training };
Scores scores_of(const tasks::Task& task, Of which, const tasks::Totals& totals, int64_t outputs);

}  // namespace gpunn::training
