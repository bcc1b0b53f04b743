// Metrics that are a number for each output, and the mean of those.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tasks/metric.hpp"

namespace gpunn::tasks {

// Predictions and targets of some rows, [rows, outputs] each.
struct OutputNumbers {
  std::size_t outputs = 0;
  std::vector<double> predictions, targets;
};

// Measures each output separately in an Output, which has add(prediction, target) and value(). The metric is the mean
// of the defined values. `numbers_of` says what is compared.
template <class Output, OutputNumbers (*numbers_of)(const EvaluatedRows& rows)>
class MeanOfOutputs : public MetricTally {
 public:
  void add(const EvaluatedRows& rows) override {
    const OutputNumbers numbers = numbers_of(rows);
    outputs_.resize(numbers.outputs);
    for (std::size_t i = 0; i < numbers.targets.size(); ++i) {
      outputs_[i % numbers.outputs].add(numbers.predictions[i], numbers.targets[i]);
    }
  }
  double value(const Accumulated& sums) const override {
    DefinedMean mean;
    for (const double one : by_output(sums)) mean.add(one);
    return mean.value();
  }
  std::vector<double> by_output(const Accumulated& /*sums*/) const override {
    std::vector<double> values;
    for (const Output& output : outputs_) values.push_back(output.value());
    return values;
  }

 private:
  std::vector<Output> outputs_;
};

}  // namespace gpunn::tasks
