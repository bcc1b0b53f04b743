#include "tasks/metrics/number_errors.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "common/significant_digits.hpp"

namespace gpunn::tasks {

namespace {

// The mean over the rows of the distance between prediction and target.
class AbsoluteError {
 public:
  void add(double prediction, double target) {
    sum_ += std::abs(prediction - target);
    rows_ += 1;
  }
  double value() const { return rows_ > 0 ? sum_ / rows_ : kUndefined; }

 private:
  double sum_ = 0, rows_ = 0;
};

// The root of the mean over the rows of the squared distance.
class SquaredError {
 public:
  void add(double prediction, double target) {
    const double error = prediction - target;
    sum_ += error * error;
    rows_ += 1;
  }
  double value() const { return rows_ > 0 ? std::sqrt(sum_ / rows_) : kUndefined; }

 private:
  double sum_ = 0, rows_ = 0;
};

// The coefficient of determination: 1 - sum of squared errors / sum of squares about the mean. Undefined if the
// target does not vary.
class Determination {
 public:
  void add(double prediction, double target) {
    const double error = prediction - target;
    // Welford's way, so that a large mean does not swallow the variance.
    rows_ += 1;
    const double before = target - mean_;
    mean_ += before / rows_;
    about_mean_ += before * (target - mean_);
    squared_errors_ += error * error;
  }
  double value() const { return about_mean_ > 0 ? 1 - squared_errors_ / about_mean_ : kUndefined; }

 private:
  double rows_ = 0, mean_ = 0, about_mean_ = 0, squared_errors_ = 0;
};

template <class Output>
TaskMetric metric(const Metric& name) {
  return {.metric = name, .tally = make_tally<MeanOfOutputs<Output, centred_numbers>>, .on_host = true};
}

}  // namespace

OutputNumbers numbers_in_units(const EvaluatedRows& rows) {
  const Field& target = rows.target();
  OutputNumbers numbers{static_cast<std::size_t>(target.count()),
                        {rows.predictions.begin(), rows.predictions.end()},
                        rows.numbers_of(target.name)};
  const std::size_t scaled = target.mean.size();  // 0: models learn the numbers as they are
  for (std::size_t i = 0; scaled > 0 && i < numbers.predictions.size(); ++i) {
    numbers.predictions[i] = numbers.predictions[i] * target.stddev[i % scaled] + target.mean[i % scaled];
  }
  return numbers;
}

OutputNumbers centred_numbers(const EvaluatedRows& rows) {
  const Field& target = rows.target();
  OutputNumbers numbers{static_cast<std::size_t>(target.count()),
                        {rows.predictions.begin(), rows.predictions.end()},
                        rows.numbers_of(target.name)};
  const std::size_t scaled = target.mean.size();  // 0: models learn the numbers as they are
  for (std::size_t i = 0; scaled > 0 && i < numbers.targets.size(); ++i) {
    numbers.predictions[i] *= target.stddev[i % scaled];
    numbers.targets[i] -= target.mean[i % scaled];
  }
  return numbers;
}

std::string numbers_text(const Field& target, std::span<const double> row) {
  constexpr int kDigits = 5;
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) text += ", ";
    if (row.size() > 1) text += (i < target.names.size() ? target.names[i] : std::to_string(i)) + " ";
    const double deviation = i < target.stddev.size() ? target.stddev[i] : 0;
    text += fmt::format("{:.{}g}", row[i], digits_beyond(row[i], deviation, kDigits));
  }
  return text;
}

std::array<TaskMetric, 3> number_errors() {
  return {metric<Determination>({"r2", "R²", true, false}), metric<SquaredError>({"rmse", "RMSE", false, false}),
          metric<AbsoluteError>({"mae", "MAE", false, false})};
}

}  // namespace gpunn::tasks
