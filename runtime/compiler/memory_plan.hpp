#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/value_use.hpp"
#include "graph/graph.hpp"

namespace gpunn::compiler {

using graph::Graph;
using graph::kNoValue;
using graph::ValueId;

// A block of the arena.
struct ArenaBlock {
  ValueId value = kNoValue;  // a root; kNoValue: the workspace of `first`
  uint64_t offset = 0;
  uint64_t bytes = 0;
  int32_t first = 0, last = 0;  // the nodes between which it is alive, both included
};

struct MemoryPlan {
  uint64_t arena_bytes = 0;
  std::vector<ArenaBlock> blocks;
  std::vector<int64_t> value_offset;      // by value id, in the arena (views too); -1: not in the arena, or no memory
  std::vector<int64_t> workspace_offset;  // by node; -1: none
};

// Assigns an offset to every arena value and workspace, so that values that are alive together do not overlap. An
// output may take over the memory of an input that dies, if the op allows it. Each of `runs` (disjoint, in order)
// counts as one node: its values, and its workspace, which is given for its first node, live through all of it and take
// over nothing; values that no other node uses have no memory. With InPlace::none outputs take over an input's memory
// only if the op demands it.
enum class InPlace { allowed, none };
MemoryPlan plan_memory(const Graph& graph, std::span<const uint64_t> workspace_bytes, uint64_t alignment,
                       const std::vector<NodeRange>& runs = {}, InPlace in_place = InPlace::allowed);

}  // namespace gpunn::compiler
