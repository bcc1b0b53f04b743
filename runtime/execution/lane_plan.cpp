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

// Which ops each op has to wait for, those that others imply left out, and how long a chain hangs on each.
struct Dependencies {
  std::vector<std::vector<std::size_t>> direct;  // the latest first
  std::vector<std::size_t> heir;                 // of those that wait for the op, the one with the longest chain
  Ancestors ancestors;

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  explicit Dependencies(std::span<const MemoryAccess> ops)
      : direct(ops.size()), heir(ops.size(), kNone), ancestors(ops.size()) {
    for (std::size_t op = 0; op < ops.size(); ++op) {
      // From the latest back, so that a dependency which a later one implies is passed over.
      for (std::size_t earlier = op; earlier-- > 0;) {
        if (ancestors.contains(op, earlier) || !conflict(ops[earlier], ops[op])) continue;
        direct[op].push_back(earlier);
        ancestors.add(op, earlier);
      }
    }
    std::vector<std::size_t> chain(ops.size(), 1);
    for (std::size_t op = ops.size(); op-- > 0;) {
      for (const std::size_t dependency : direct[op]) {
        // Of equally long ones the earliest, which comes last here.
        if (chain[op] + 1 < chain[dependency]) continue;
        chain[dependency] = chain[op] + 1;
        heir[dependency] = op;
      }
    }
  }
};

// What ran last on each lane.
using LastOps = std::vector<std::optional<std::size_t>>;

// An op follows its predecessor on the lane if it is the predecessor's heir, so that the longest chain changes lanes as
// seldom as it can: that costs more than to go on. Others take a lane that no heir waits for: one whose work is over by
// then in any case, an empty one, or the one that has been idle longest.
std::size_t choose(const LastOps& lanes, const Dependencies& dependencies, std::size_t op) {
  for (const std::size_t dependency : dependencies.direct[op]) {
    if (dependencies.heir[dependency] != op) continue;
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      if (lanes[lane] == dependency) return lane;
    }
  }
  const auto awaits_heir = [&](std::size_t lane) {
    const std::size_t heir = dependencies.heir[*lanes[lane]];
    return heir != Dependencies::kNone && heir > op;
  };
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane] && !awaits_heir(lane) && dependencies.ancestors.contains(op, *lanes[lane])) return lane;
  }
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (!lanes[lane]) return lane;
  }
  std::size_t chosen = 0;
  for (std::size_t lane = 1; lane < lanes.size(); ++lane) {
    const bool better = awaits_heir(chosen) != awaits_heir(lane) ? awaits_heir(chosen) : *lanes[lane] < *lanes[chosen];
    if (better) chosen = lane;
  }
  return chosen;
}

}  // namespace

std::vector<LaneStep> plan_lanes(std::span<const MemoryAccess> ops, std::size_t lane_count) {
  std::vector<LaneStep> steps(ops.size());
  if (lane_count <= 1) return steps;
  const Dependencies dependencies(ops);
  LastOps lanes(lane_count);
  for (std::size_t op = 0; op < ops.size(); ++op) {
    LaneStep& step = steps[op];
    step.lane = ops[op].movable ? choose(lanes, dependencies, op) : 0;
    for (const std::size_t dependency : dependencies.direct[op]) {
      if (steps[dependency].lane != step.lane) step.after.push_back(dependency);
    }
    lanes[step.lane] = op;
  }
  return steps;
}

}  // namespace gpunn::execution
