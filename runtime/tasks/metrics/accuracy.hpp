#pragma once

#include <array>

#include "tasks/metric.hpp"

namespace gpunn::tasks {

// The shares of the rows whose class has the largest output, and one of the five largest, from kTotals.
std::array<TaskMetric, 2> accuracies();

}  // namespace gpunn::tasks
