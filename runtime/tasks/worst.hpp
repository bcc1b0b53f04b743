#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpunn::tasks {

// Keeps the items with the largest loss, largest first; NaN is the largest. Equal losses keep their order. T has a
// member `loss`.
template <class T>
class Worst {
 public:
  explicit Worst(int64_t most) : most_(static_cast<std::size_t>(std::max<int64_t>(most, 0))) {}
  // Calls make() for the item if it is among the worst so far.
  template <class Make>
  void add(double loss, const Make& make) {
    const auto place = std::upper_bound(items_.begin(), items_.end(), rank(loss),
                                        [](double a, const T& item) { return a > rank(item.loss); });
    if (static_cast<std::size_t>(place - items_.begin()) >= most_) return;
    items_.insert(place, make());
    if (items_.size() > most_) items_.pop_back();
  }
  std::vector<T> take() { return std::move(items_); }

 private:
  static double rank(double loss) { return std::isnan(loss) ? HUGE_VAL : loss; }

  std::size_t most_;
  std::vector<T> items_;
};

}  // namespace gpunn::tasks
