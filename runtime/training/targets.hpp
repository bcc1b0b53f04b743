#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "fields/standardise.hpp"
#include "tasks/task.hpp"

namespace gpunn::training {

struct RowOutputs;

// Throws Error(usage), with task, loss, last layer and data, if the data set lacks what the task learns.
void require_targets(const Experiment& experiment, const Dataset& dataset);

// Throws Error(usage) if the model takes samples of another shape.
void require_samples(const Experiment& experiment, const Dataset& dataset);

// Brings a field, in this dtype, to the device: numbers become (number - mean) / stddev, if the field has means.
fields::Standardiser field_standardiser(const Field& field, DType dtype);

// The inverse for what a model predicts: number i of a row becomes number * stddev[i] + mean[i]. Without means the
// numbers stay.
std::vector<double> in_data_units(std::span<const float> values, const std::vector<double>& mean,
                                  const std::vector<double>& stddev);

// The targets of rows of a part, [rows, outputs], as the data set has them.
std::vector<double> target_numbers(const Split& part, int64_t first, int64_t rows);

// The inputs of metrics for some rows: predictions and targets. The object owns the arrays.
class RowsToScore {
 public:
  RowsToScore(const Dataset& dataset, const RowOutputs& rows);
  RowsToScore(const RowsToScore&) = delete;
  RowsToScore& operator=(const RowsToScore&) = delete;
  const tasks::ScoredRows& rows() const { return rows_; }

 private:
  void take_numbers(const Dataset& dataset, const RowOutputs& rows, int64_t count);

  std::vector<float> targets_, inputs_;
  std::vector<tasks::TrueImage> originals_;
  std::vector<double> predicted_numbers_, target_numbers_;
  tasks::ScoredRows rows_;
};

}  // namespace gpunn::training
