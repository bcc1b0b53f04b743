#include "execution/streams/stream_plan.hpp"

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

// A row of bits for each op: the ops that always run before it.
class Ancestors {
 public:
  explicit Ancestors(std::size_t ops) : words_((ops + 63) / 64), bits_(ops * words_, 0) {}
  bool contains(std::size_t op, std::size_t other) const {
    return (bits_[op * words_ + other / 64] >> (other % 64) & 1U) != 0;
  }
  // Adds `other` and its ancestors.
  void add(std::size_t op, std::size_t other) {
    for (std::size_t i = 0; i < words_; ++i) bits_[op * words_ + i] |= bits_[other * words_ + i];
    bits_[op * words_ + other / 64] |= uint64_t{1} << (other % 64);
  }

 private:
  std::size_t words_;
  std::vector<uint64_t> bits_;
};

// The ops that each op has to wait for, without those that others imply, and its heir.
struct Dependencies {
  std::vector<std::vector<std::size_t>> direct;  // the latest first
  std::vector<std::size_t> heir;                 // by op: the op that waits for it and begins the longest chain
  Ancestors ancestors;

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  explicit Dependencies(std::span<const MemoryAccess> ops)
      : direct(ops.size()), heir(ops.size(), kNone), ancestors(ops.size()) {
    for (std::size_t op = 0; op < ops.size(); ++op) {
      // From the latest back: a dependency that a later one implies is skipped.
      for (std::size_t earlier = op; earlier-- > 0;) {
        if (ancestors.contains(op, earlier) || !conflict(ops[earlier], ops[op])) continue;
        direct[op].push_back(earlier);
        ancestors.add(op, earlier);
      }
    }
    std::vector<std::size_t> chain(ops.size(), 1);
    for (std::size_t op = ops.size(); op-- > 0;) {
      if (ops[op].where == MemoryAccess::Where::between_ranks) continue;  // takes no stream of another op
      for (const std::size_t dependency : direct[op]) {
        // Among equally long chains the earliest wins, which comes last here.
        if (chain[op] + 1 < chain[dependency]) continue;
        chain[dependency] = chain[op] + 1;
        heir[dependency] = op;
      }
    }
  }
};

// The last op on each stream.
using LastOps = std::vector<std::optional<std::size_t>>;

// Keeps the longest chain on one stream, since switching streams costs an event: an heir takes the stream of its
// predecessor. Another op takes a stream that no heir waits for. Streams whose work is always done by then come first,
// then empty streams, then the one that has been idle longest.
std::size_t choose(const LastOps& streams, const Dependencies& dependencies, std::size_t op) {
  for (const std::size_t dependency : dependencies.direct[op]) {
    if (dependencies.heir[dependency] != op) continue;
    for (std::size_t stream = 0; stream < streams.size(); ++stream) {
      if (streams[stream] == dependency) return stream;
    }
  }
  const auto awaits_heir = [&](std::size_t stream) {
    const std::size_t heir = dependencies.heir[*streams[stream]];
    return heir != Dependencies::kNone && heir > op;
  };
  for (std::size_t stream = 0; stream < streams.size(); ++stream) {
    if (streams[stream] && !awaits_heir(stream) && dependencies.ancestors.contains(op, *streams[stream])) return stream;
  }
  for (std::size_t stream = 0; stream < streams.size(); ++stream) {
    if (!streams[stream]) return stream;
  }
  std::size_t chosen = 0;
  for (std::size_t stream = 1; stream < streams.size(); ++stream) {
    const bool better =
        awaits_heir(chosen) != awaits_heir(stream) ? awaits_heir(chosen) : *streams[stream] < *streams[chosen];
    if (better) chosen = stream;
  }
  return chosen;
}

}  // namespace

std::vector<StreamStep> plan_streams(std::span<const MemoryAccess> ops, std::size_t stream_count) {
  std::vector<StreamStep> steps(ops.size());
  const auto is_between = [](const MemoryAccess& op) { return op.where == MemoryAccess::Where::between_ranks; };
  if (stream_count <= 1 && std::ranges::none_of(ops, is_between)) return steps;
  const Dependencies dependencies(ops);
  LastOps streams(stream_count);
  for (std::size_t op = 0; op < ops.size(); ++op) {
    StreamStep& step = steps[op];
    const bool between = is_between(ops[op]);
    step.stream = between                                       ? stream_count
                  : ops[op].where == MemoryAccess::Where::first ? 0
                                                                : choose(streams, dependencies, op);
    for (const std::size_t dependency : dependencies.direct[op]) {
      if (steps[dependency].stream != step.stream) step.after.push_back(dependency);
    }
    if (!between) streams[step.stream] = op;
  }
  return steps;
}

}  // namespace gpunn::execution
