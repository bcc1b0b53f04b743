#pragma once

#include <gpunn/data.hpp>
#include <gpunn/evaluation.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tasks/accumulator.hpp"
#include "tasks/evaluated_rows.hpp"

namespace gpunn::tasks {

// The evaluated data of a report.
struct ReportInputs {
  const Dataset& dataset;  // its `test` is evaluated; must outlive the report
  int64_t worst = 0;       // the most rows or pictures to show
  // The sample of a row of `test`, in the type and the units of the data set.
  std::function<std::vector<std::byte>(int64_t row)> sample = {};
};

// Gathers what a task shows of an evaluation besides its metrics.
class Report {
 public:
  virtual ~Report() = default;
  virtual void add(const EvaluatedRows& rows) = 0;
  // Fills in the parts that the task has. `report.total` is complete; images replace its scores. `sums` are the
  // accumulators of the device.
  virtual void finish(const Accumulated& sums, ClassEvalReport& report) = 0;
};

}  // namespace gpunn::tasks
