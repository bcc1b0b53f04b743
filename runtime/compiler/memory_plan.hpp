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

// Offsets for every arena value and workspace such that no two that are alive together overlap, but for outputs that
// take over a dying input's memory where the op allows it.
//
// Each of `runs` (they don't overlap, and are in order) counts as one node: what it touches, and its workspace, which
// is given for its first node, lives through all of it and takes over nothing; values that no node outside it touches
// have no memory.
//
// With InPlace::none no output takes over an input's memory, except where the op demands it.
enum class InPlace { allowed, none };
MemoryPlan plan_memory(const Graph& graph, std::span<const uint64_t> workspace_bytes, uint64_t alignment,
                       const std::vector<NodeRange>& runs = {}, InPlace in_place = InPlace::allowed);

}  // namespace gpunn::compiler
