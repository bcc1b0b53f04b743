#pragma once

#include <gpunn/evaluation.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tasks/report.hpp"

namespace gpunn::tasks {

// The class that a row's outputs name: the largest, the first of equal ones, as METRICS_ACCUMULATE ranks them; -1 if
// one of them is NaN.
int64_t predicted_class(std::span<const float> outputs);

// Counts rows by their class and the predicted one.
class ClassTally {
 public:
  explicit ClassTally(const std::vector<std::string>& names);    // of the classes
  void add(int64_t label, int64_t predicted, int64_t rows = 1);  // predicted: -1 if the outputs are NaN
  // Sets the figures of the classes, their means, and the confusion matrix.
  void put_into(ClassEvalReport& report) const;

 private:
  std::vector<ClassReport> classes_;
  ConfusionMatrix confusion_;
};

// Figures of each class, the confusion matrix, and the mistakes with the largest loss.
std::unique_ptr<Report> make_class_report(const ReportInputs& inputs);

}  // namespace gpunn::tasks
