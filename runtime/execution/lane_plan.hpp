#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpunn::execution {

// Bytes of device memory, the end excluded.
struct MemoryRange {
  uintptr_t begin = 0, end = 0;
  bool overlaps(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

// What one op touches. A workspace is written.
struct MemoryAccess {
  std::vector<MemoryRange> reads, writes;
  bool movable = true;  // false: the op stays on lane 0
};

// Where one op runs, and after which ops of other lanes. Ops of one lane run in order.
struct LaneStep {
  std::size_t lane = 0;
  std::vector<std::size_t> after;  // earlier ops, on other lanes
};

// Spreads ops that are given in an order in which they can run over at most `lanes` streams, so that any two of which
// one writes what the other touches keep their order.
std::vector<LaneStep> plan_lanes(std::span<const MemoryAccess> ops, std::size_t lanes);

}  // namespace gpunn::execution
