#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/task.hpp"

namespace gpunn::training {

struct RowOutputs;

// Throws Error(usage), which names task, loss, last layer and data, where the data set does not have what the task
// learns.
void require_targets(const Experiment& experiment, const Dataset& dataset);

// Brings the targets of all parts to (target - mean) / stddev, where the data set has means.
void scale_targets(Dataset& dataset);

// Back, in place: number i of a row to number * stddev[i] + mean[i]. Nothing where there are no means.
void to_data_units(std::span<float> values, const std::vector<double>& mean, const std::vector<double>& stddev);

// The targets of rows of a part whose targets scale_targets() has scaled, as they were: f32[rows, outputs].
std::vector<float> targets_in_data_units(const Dataset& dataset, const Split& part, int64_t first, int64_t rows);

// What metrics see of rows: what the model predicts and what is right. The arrays belong to the object.
class RowsToScore {
 public:
  RowsToScore(const Dataset& dataset, const RowOutputs& rows);
  RowsToScore(const RowsToScore&) = delete;
  RowsToScore& operator=(const RowsToScore&) = delete;
  const tasks::ScoredRows& rows() const { return rows_; }

 private:
  std::vector<float> targets_, inputs_;
  tasks::ScoredRows rows_;
};

}  // namespace gpunn::training
