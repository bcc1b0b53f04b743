#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/task.hpp"

namespace gpunn::training {

struct RowOutputs;

// Throws Error(usage), with task, loss, last layer and data, if the data set lacks what the task learns.
void require_targets(const Experiment& experiment, const Dataset& dataset);

// Throws Error(usage) if the model takes samples of another shape.
void require_samples(const Experiment& experiment, const Dataset& dataset);

// Scales the targets of all parts to (target - mean) / stddev, if the data set has means.
void scale_targets(Dataset& dataset);

// The inverse, in place: number i of a row becomes number * stddev[i] + mean[i]. Does nothing without means.
void to_data_units(std::span<float> values, const std::vector<double>& mean, const std::vector<double>& stddev);

// The targets of rows of a part whose targets scale_targets() has scaled, as they were: f32[rows, outputs].
std::vector<float> targets_in_data_units(const Dataset& dataset, const Split& part, int64_t first, int64_t rows);

// The inputs of metrics for some rows: predictions and targets. The object owns the arrays.
class RowsToScore {
 public:
  RowsToScore(const Dataset& dataset, const RowOutputs& rows);
  RowsToScore(const RowsToScore&) = delete;
  RowsToScore& operator=(const RowsToScore&) = delete;
  const tasks::ScoredRows& rows() const { return rows_; }

 private:
  std::vector<float> targets_, inputs_;
  std::vector<tasks::TrueImage> originals_;
  tasks::ScoredRows rows_;
};

}  // namespace gpunn::training
