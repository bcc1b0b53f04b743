#pragma once

#include <gpunn/data.hpp>
#include <gpunn/metric.hpp>
#include <gpunn/training.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/task.hpp"

namespace gpunn::training {

struct RowOutputs;

// The metrics of a task that are computed on the host, row by row, and the rows that are NaN or infinite.
class RowMetrics {
 public:
  RowMetrics(const tasks::Task& task, bool has_loss);        // without a loss, that of rows is NaN
  void add(const RowOutputs& rows, const Dataset& dataset);  // rows of dataset.test
  Scores put_into(const Scores& scores) const;               // in place of those of the same names
  const std::optional<NonFiniteRows>& non_finite() const { return non_finite_; }

 private:
  void count_non_finite(const RowOutputs& seen);

  std::vector<std::pair<std::string, std::unique_ptr<tasks::RowMetric>>> metrics_;
  std::optional<NonFiniteRows> non_finite_;
  bool has_loss_;
};

bool has_row_metrics(const tasks::Task& task);

}  // namespace gpunn::training
