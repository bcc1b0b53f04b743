#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/class_report.hpp"

namespace gpunn::testing {

// The figures of a confusion matrix, [names, names] by true class.
inline ClassEvalReport tallied(const std::vector<int64_t>& matrix, const std::vector<std::string>& names) {
  tasks::ClassTally tally(names);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    tally.add(static_cast<int64_t>(i / names.size()), static_cast<int64_t>(i % names.size()), matrix[i]);
  }
  ClassEvalReport report;
  tally.put_into(report);
  return report;
}

}  // namespace gpunn::testing
