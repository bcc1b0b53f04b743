// The errors of predicted numbers: of each target column, and the mean over the columns, as scikit-learn has them.
#pragma once

#include <array>
#include <span>
#include <string>

#include "tasks/metrics/mean_of_outputs.hpp"

namespace gpunn::tasks {

// Predictions and targets of a regression in the units of the data.
OutputNumbers numbers_in_units(const EvaluatedRows& rows);
// The same without the mean of the training targets: it is
// equal in both, and would round the differences.
OutputNumbers centred_numbers(const EvaluatedRows& rows);

// A row for readers: "price 1.25, rent 7". Numbers have more digits if the column's deviation asks for them.
std::string numbers_text(const Field& target, std::span<const double> row);

// The coefficient of determination, the root of the mean squared error, the mean absolute error.
std::array<TaskMetric, 3> number_errors();

}  // namespace gpunn::tasks
