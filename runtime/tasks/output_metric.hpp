// Metrics that are a number for each output, and the mean of those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tasks/task.hpp"

namespace gpunn::tasks {

// Measures each output separately in an Output, which has add(prediction, target) and value(). The metric is the mean
// of the defined values.
template <class Output>
class MeanOfOutputs : public RowMetric {
 public:
  void add(const ScoredRows& rows) override {
    const auto outputs = static_cast<std::size_t>(rows.outputs);
    outputs_.resize(outputs);
    for (std::size_t i = 0; i < rows.target_numbers.size(); ++i) {
      outputs_[i % outputs].add(rows.predicted_numbers[i], rows.target_numbers[i]);
    }
    for (std::size_t i = 0; i < rows.targets.size(); ++i) {
      outputs_[i % outputs].add(rows.predictions[i], rows.targets[i]);
    }
  }
  double value() const override {
    DefinedMean mean;
    for (const double one : by_output()) mean.add(one);
    return mean.value();
  }
  std::vector<double> by_output() const override {
    std::vector<double> values;
    for (const Output& output : outputs_) values.push_back(output.value());
    return values;
  }

 private:
  std::vector<Output> outputs_;
};

template <class T>
std::unique_ptr<RowMetric> make_metric() {
  return std::make_unique<T>();
}

template <class Output>
std::unique_ptr<RowMetric> make_mean() {
  return std::make_unique<MeanOfOutputs<Output>>();
}

}  // namespace gpunn::tasks
