#pragma once

#include <gpunn/evaluation.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "training/session.hpp"

namespace gpunn::training {

// The class that a row's outputs name: the largest, the first of equal ones, as METRICS_ACCUMULATE ranks them; -1 where
// one of them is NaN.
int64_t predicted_class(std::span<const float> outputs);

// Fills in `classes` and the macro means from a confusion matrix of names.size() squared.
ClassEvalReport class_metrics(std::vector<int64_t> confusion, const std::vector<std::string>& names);

// The test split with the session's parameters.
ClassEvalReport evaluate_classes(Session& session, int64_t mistakes);

}  // namespace gpunn::training
