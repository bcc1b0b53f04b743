#pragma once

#include <gpunn/field.hpp>

#include <memory>
#include <span>
#include <string>

#include "tasks/metrics/mean_of_outputs.hpp"
#include "tasks/report.hpp"

namespace gpunn::tasks {

// How a task shows outputs that are numbers.
struct ShownOutputs {
  std::span<const TaskMetric> metrics;                                    // of each output
  OutputNumbers (*numbers)(const EvaluatedRows& rows);                    // in the units of the data
  std::string (*text)(const Field& target, std::span<const double> row);  // a row for readers
  bool counts_rows = false;   // outputs are labels: count the rows that have each
  bool keeps_values = false;  // for a plot of predictions over targets
};

// Figures of each output, and the rows with the largest loss.
std::unique_ptr<Report> make_output_report(const ReportInputs& inputs, const ShownOutputs& shown);

}  // namespace gpunn::tasks
