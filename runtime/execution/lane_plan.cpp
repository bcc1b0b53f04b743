#include "execution/lane_plan.hpp"

#include <algorithm>
#include <optional>

namespace gpunn::execution {

namespace {

bool any_overlap(const std::vector<MemoryRange>& a, const std::vector<MemoryRange>& b) {
  for (const MemoryRange& x : a) {
    for (const MemoryRange& y : b) {
      if (x.overlaps(y)) return true;
    }
  }
  return false;
}

bool conflict(const MemoryAccess& earlier, const MemoryAccess& later) {
  return any_overlap(earlier.writes, later.reads) || any_overlap(earlier.writes, later.writes) ||
         any_overlap(earlier.reads, later.writes);
}

// A row of bits for each op: those that run before it in any case.
class Ancestors {
 public:
  explicit Ancestors(std::size_t ops) : words_((ops + 63) / 64), bits_(ops * words_, 0) {}
  bool contains(std::size_t op, std::size_t other) const {
    return (bits_[op * words_ + other / 64] >> (other % 64) & 1U) != 0;
  }
  // `other`, and all that is before it.
  void add(std::size_t op, std::size_t other) {
    for (std::size_t i = 0; i < words_; ++i) bits_[op * words_ + i] |= bits_[other * words_ + i];
    bits_[op * words_ + other / 64] |= uint64_t{1} << (other % 64);
  }

 private:
  std::size_t words_;
  std::vector<uint64_t> bits_;
};

struct Lane {
  std::optional<std::size_t> last;
};

// The lane that makes op wait for nothing that it need not wait for: one that ends in an op it depends on, the latest
// of those first; one that ends in an op that is over by then; an empty one; or, where there is none, the one whose
// last op was enqueued first.
std::size_t choose(const std::vector<Lane>& lanes, const std::vector<std::size_t>& direct, const Ancestors& ancestors,
                   std::size_t op) {
  for (const std::size_t dependency : direct) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      if (lanes[lane].last == dependency) return lane;
    }
  }
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].last && ancestors.contains(op, *lanes[lane].last)) return lane;
  }
  std::size_t oldest = 0;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (!lanes[lane].last) return lane;
    if (*lanes[lane].last < *lanes[oldest].last) oldest = lane;
  }
  return oldest;
}

}  // namespace

std::vector<LaneStep> plan_lanes(std::span<const MemoryAccess> ops, std::size_t lane_count) {
  std::vector<LaneStep> steps(ops.size());
  if (lane_count <= 1) return steps;
  Ancestors ancestors(ops.size());
  std::vector<Lane> lanes(lane_count);
  for (std::size_t op = 0; op < ops.size(); ++op) {
    // From the latest back, so that a dependency which a later one implies is passed over.
    std::vector<std::size_t> direct;
    for (std::size_t earlier = op; earlier-- > 0;) {
      if (ancestors.contains(op, earlier) || !conflict(ops[earlier], ops[op])) continue;
      direct.push_back(earlier);
      ancestors.add(op, earlier);
    }
    LaneStep& step = steps[op];
    step.lane = ops[op].movable ? choose(lanes, direct, ancestors, op) : 0;
    // The order of the lane itself holds too.
    if (const auto last = lanes[step.lane].last) ancestors.add(op, *last);
    for (const std::size_t dependency : direct) {
      if (steps[dependency].lane != step.lane) step.after.push_back(dependency);
    }
    lanes[step.lane].last = op;
  }
  return steps;
}

}  // namespace gpunn::execution
