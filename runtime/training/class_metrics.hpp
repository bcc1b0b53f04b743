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

// Counts rows by their class and the predicted one.
class ClassTally {
 public:
  explicit ClassTally(const std::vector<std::string>& names);    // a class each
  void add(int64_t label, int64_t predicted, int64_t rows = 1);  // predicted: -1 if the outputs are NaN
  // All but `total` and `mistakes`.
  ClassEvalReport report() const;

 private:
  ClassEvalReport counts_;
};

// The test split with the session's parameters; of data without classes evaluate_outputs().
ClassEvalReport evaluate_classes(Session& session, int64_t mistakes);

}  // namespace gpunn::training
