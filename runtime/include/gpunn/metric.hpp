#pragma once

#include <algorithm>
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

// The value that a model reaches by a metric.
struct Score {
  Metric metric;
  double value = 0;  // NaN: the metric does not apply, as top-5 accuracy of five classes or fewer
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
  // Returns NaN for an unknown metric, too.
  double value(std::string_view name) const {
    const Score* score = find(name);
    return score == nullptr ? std::numeric_limits<double>::quiet_NaN() : score->value;
  }

 private:
  std::vector<Score> scores_;
};

}  // namespace gpunn
