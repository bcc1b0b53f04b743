// How well sets of labels are predicted: of each label, and the mean over the labels, as scikit-learn has them.
#pragma once

#include <array>
#include <span>
#include <string>

#include "tasks/metrics/mean_of_outputs.hpp"

namespace gpunn::tasks {

inline constexpr double kLabelThreshold = 0.5;  // a probability from here on counts as the label

// Probabilities, and 1 or 0 for labels that a row has or lacks.
OutputNumbers label_numbers(const EvaluatedRows& rows);
// The labels of a row for readers: "cat, dog", or "none".
std::string labels_text(const Field& target, std::span<const double> row);

// Of all labels: mean average precision, mean F1, and the share of the rows whose labels are all right.
std::array<TaskMetric, 3> label_set_metrics();
// Of each label: average precision, precision, recall, F1.
std::array<TaskMetric, 4> single_label_metrics();

}  // namespace gpunn::tasks
