#pragma once

#include <gpunn/metric.hpp>

#include <map>
#include <string>

#include <nanobind/nanobind.h>

namespace gpunn::python {

inline constexpr const char* kScoresDoc = "By name, the most telling first; NaN if a metric is undefined.";

// A dictionary keeps the order in which the task names its metrics.
inline nanobind::typed<nanobind::dict, std::string, double> scores_of(const Scores& scores) {
  nanobind::dict all;
  for (const Score& score : scores) all[score.metric.name.c_str()] = score.value;
  return nanobind::typed<nanobind::dict, std::string, double>(all);
}

}  // namespace gpunn::python
