#pragma once

#include <gpunn/data.hpp>
#include <gpunn/metric.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tasks/task.hpp"

namespace gpunn::training {

struct RowOutputs;

// The metrics of a task that are computed on the host, row by row.
class RowMetrics {
 public:
  explicit RowMetrics(const tasks::Task& task);
  void add(const RowOutputs& rows, const Dataset& dataset);  // rows of dataset.test
  Scores put_into(const Scores& scores) const;               // in place of those of the same names

 private:
  std::vector<std::pair<std::string, std::unique_ptr<tasks::RowMetric>>> metrics_;
};

bool has_row_metrics(const tasks::Task& task);

}  // namespace gpunn::training
