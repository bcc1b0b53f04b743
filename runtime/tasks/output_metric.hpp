// Metrics that are a number for each output, and the mean of those.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "tasks/task.hpp"

namespace gpunn::tasks {

inline constexpr double kSaysNothing = std::numeric_limits<double>::quiet_NaN();

// Measures each output separately in an Output, which has add(prediction, target) and value(). The metric is the mean
// of the values that are not NaN; NaN if there is none.
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
    double sum = 0, count = 0;
    for (const double one : by_output()) {
      if (std::isnan(one)) continue;
      sum += one;
      count += 1;
    }
    return count > 0 ? sum / count : kSaysNothing;
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
