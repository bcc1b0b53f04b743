#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/class_metrics.hpp"

namespace gpunn::testing {

// The figures of a confusion matrix, [names, names] by true class.
inline ClassEvalReport tallied(const std::vector<int64_t>& matrix, const std::vector<std::string>& names) {
  training::ClassTally tally(names);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    tally.add(static_cast<int64_t>(i / names.size()), static_cast<int64_t>(i % names.size()), matrix[i]);
  }
  return tally.report();
}

}  // namespace gpunn::testing
