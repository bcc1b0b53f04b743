#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// A number that says how good a model is.
struct Metric {
  std::string name;   // in experiments and records: "top5_accuracy"
  std::string title;  // for readers: "top-5 accuracy"
  bool larger_is_better = true;
  bool is_share = false;  // lies between 0 and 1, shown in percent
};

// The value of a metric that the evaluated data does not define, such as R2 of a constant target. It is NaN in C++,
// Python and HDF5, null in JSON, an empty cell in CSV, and "-" for readers. Means leave it out, and it is never the
// best.
inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
inline bool is_defined(double value) { return !std::isnan(value); }

// Whether `value` is better than `best` by more than `min_delta`. Any defined value is better than an undefined one, an
// undefined value is better than none, and equal infinities tie.
inline bool is_better(const Metric& metric, double value, double best, double min_delta = 0) {
  if (!is_defined(value) || !is_defined(best)) return is_defined(value);
  return metric.larger_is_better ? value > best + min_delta : value < best - min_delta;
}

// The mean of the defined values among those added; undefined without any.
class DefinedMean {
 public:
  void add(double value) {
    if (!is_defined(value)) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : kUndefined; }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

// A value for readers: "-" if it is undefined, "inf" or "-inf", else digits(value).
template <class Digits>
std::string metric_text(double value, const Digits& digits) {
  if (!is_defined(value)) return "-";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return digits(value);
}

// The value that a model reaches by a metric.
struct Score {
  Metric metric;
  double value = 0;     // can be kUndefined
  bool applies = true;  // false: never defined for this model, as top-5 accuracy of five classes; readers don't see it
};

// The metrics of a task, the most informative first. The loss is not among them.
class Scores {
 public:
  Scores() = default;
  explicit Scores(std::vector<Score> scores) : scores_(std::move(scores)) {}
  auto begin() const { return scores_.begin(); }
  auto end() const { return scores_.end(); }
  bool empty() const { return scores_.empty(); }
  const Score& front() const { return scores_.front(); }
  const Score* find(std::string_view name) const {
    const auto found = std::find_if(begin(), end(), [&](const Score& one) { return one.metric.name == name; });
    return found == end() ? nullptr : &*found;
  }
  // Returns kUndefined for an unknown metric, too.
  double value(std::string_view name) const {
    const Score* score = find(name);
    return score == nullptr ? kUndefined : score->value;
  }

 private:
  std::vector<Score> scores_;
};

}  // namespace gpunn
