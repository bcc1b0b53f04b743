#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpunn::compiler {

// Sets or clears items so that the sum of costs is least: a minimum cut of a network, found by a maximum flow (Dinitz,
// 1970). Of several such choices it takes the one that sets the fewest items.
class MinCut {
 public:
  using Item = std::size_t;
  using Cost = int64_t;  // 0 or more
  // More than any sum of costs that can be avoided.
  static constexpr Cost kNever = Cost{1} << 60U;

  // An item, what it costs to set it, and what to leave it clear.
  Item add(Cost set, Cost clear);
  // What it costs that `one` is set and `other` is not.
  void add_difference(Item one, Item other, Cost cost);

  // By item: whether it is set.
  std::vector<bool> solve() const;

 private:
  struct Unary {
    Cost set = 0, clear = 0;
  };
  struct Difference {
    Item one = 0, other = 0;
    Cost cost = 0;
  };
  std::vector<Unary> items_;
  std::vector<Difference> differences_;
};

}  // namespace gpunn::compiler
