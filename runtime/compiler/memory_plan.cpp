#include "compiler/memory_plan.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "ops/op.hpp"

namespace gpunn::compiler {

using graph::kNoValue;
using graph::Node;
using graph::Storage;

namespace {

// When a root of the arena is first written and last touched.
struct Lifetime {
  int32_t first = std::numeric_limits<int32_t>::max();
  int32_t last = -1;
};

bool in_arena(const Graph& graph, ValueId root) { return graph.value(root).storage == Storage::arena; }

// The nodes that are one with each node: itself, or those of its run.
class Units {
 public:
  Units(const Graph& graph, const std::vector<NodeRange>& runs)
      : spans_(graph.nodes().size()), in_run_(graph.nodes().size(), false) {
    for (std::size_t n = 0; n < spans_.size(); ++n) spans_[n] = {static_cast<int32_t>(n), static_cast<int32_t>(n)};
    std::size_t free = 0;
    for (const NodeRange& run : runs) {
      if (run.count == 0 || run.first < free || run.end() > spans_.size()) {
        throw Error("runs of nodes must not be empty, overlap or go beyond the program");
      }
      free = run.end();
      const Lifetime span{static_cast<int32_t>(run.first), static_cast<int32_t>(run.end()) - 1};
      for (std::size_t n = run.first; n < run.end(); ++n) {
        spans_[n] = span;
        in_run_[n] = true;
      }
    }
  }
  const Lifetime& of(std::size_t node) const { return spans_[node]; }
  bool in_run(std::size_t node) const { return in_run_[node]; }

 private:
  std::vector<Lifetime> spans_;
  std::vector<bool> in_run_;
};

std::map<ValueId, Lifetime> lifetimes(const Graph& graph, const Units& units) {
  std::map<ValueId, Lifetime> result;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    const Lifetime& unit = units.of(n);
    for (const ValueId input : node.inputs) {
      const ValueId root = graph.root(input);
      if (!in_arena(graph, root)) continue;
      if (!result.contains(root)) {
        throw Error("'" + node.name + "' reads '" + graph.value(input).name + "' before any op writes it");
      }
      result[root].last = std::max(result[root].last, unit.last);
    }
    for (const ValueId output : node.outputs) {
      const ValueId root = graph.root(output);
      if (!in_arena(graph, root)) continue;
      Lifetime& lifetime = result[root];
      lifetime.first = std::min(lifetime.first, unit.first);
      lifetime.last = std::max(lifetime.last, unit.last);
    }
  }
  return result;
}

// Blocks and which of them each root lies in.
struct Blocks {
  std::vector<ArenaBlock> blocks;
  std::map<ValueId, std::size_t> of_root;
};

// The block that a fresh output may take over: that of an input which dies at this node.
const std::size_t* inherited(const Graph& graph, const Blocks& blocks, const Node& node, int32_t index,
                             std::size_t output, uint64_t bytes) {
  const ops::OpInfo& info = ops::op_info(node.op);
  if (output >= info.may_alias.size()) return nullptr;
  if (graph.value(node.outputs[output]).view_of != kNoValue) return nullptr;
  for (const int candidate : info.may_alias[output]) {
    const auto k = static_cast<std::size_t>(candidate);
    if (k >= node.inputs.size()) continue;
    const ValueId root = graph.root(node.inputs[k]);
    const auto found = blocks.of_root.find(root);
    if (found == blocks.of_root.end() || graph.value(root).type.bytes() != bytes) continue;
    const bool read_twice = std::ranges::count_if(node.inputs, [&](ValueId id) { return graph.root(id) == root; }) > 1;
    if (!read_twice && blocks.blocks[found->second].last == index) return &found->second;
  }
  return nullptr;
}

Blocks form_blocks(const Graph& graph, const Units& units, const std::vector<bool>& internal, InPlace in_place) {
  const std::map<ValueId, Lifetime> alive = lifetimes(graph, units);
  Blocks result;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    const auto index = static_cast<int32_t>(n);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId root = graph.root(node.outputs[i]);
      if (!in_arena(graph, root) || result.of_root.contains(root)) continue;
      if (internal[static_cast<std::size_t>(root)]) continue;
      const uint64_t bytes = graph.value(root).type.bytes();
      const Lifetime& lifetime = alive.at(root);
      const bool separate = units.in_run(n) || in_place == InPlace::none;
      const std::size_t* const block = separate ? nullptr : inherited(graph, result, node, index, i, bytes);
      if (block != nullptr) {
        result.blocks[*block].last = lifetime.last;
        result.of_root.emplace(root, *block);
      } else {
        result.of_root.emplace(root, result.blocks.size());
        result.blocks.push_back(
            {.value = root, .offset = 0, .bytes = bytes, .first = lifetime.first, .last = lifetime.last});
      }
    }
  }
  return result;
}

uint64_t align_up(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

// Each block in turn at the lowest offset where nothing that is alive with it lies. Returns the arena's size.
uint64_t place_in_order(std::vector<ArenaBlock>& blocks, const std::vector<std::size_t>& order, uint64_t alignment) {
  uint64_t total = 0;
  std::vector<const ArenaBlock*> placed;  // by offset
  for (const std::size_t i : order) {
    ArenaBlock& block = blocks[i];
    const uint64_t bytes = align_up(block.bytes, alignment);
    uint64_t offset = 0;
    for (const ArenaBlock* other : placed) {
      if (other->last < block.first || block.last < other->first) continue;
      if (other->offset >= offset + bytes) break;
      offset = std::max(offset, other->offset + align_up(other->bytes, alignment));
    }
    block.offset = offset;
    total = std::max(total, offset + bytes);
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &ArenaBlock::offset), &block);
  }
  return total;
}

// The most bytes that are alive together: no arena is smaller.
uint64_t most_alive(const std::vector<ArenaBlock>& blocks, uint64_t alignment) {
  std::map<int32_t, std::pair<uint64_t, uint64_t>> changes;  // by node: bytes that come before it, and go before it
  for (const ArenaBlock& block : blocks) {
    changes[block.first].first += align_up(block.bytes, alignment);
    changes[block.last + 1].second += align_up(block.bytes, alignment);
  }
  uint64_t alive = 0, most = 0;
  for (const auto& [node, change] : changes) {
    alive = alive - change.second + change.first;
    most = std::max(most, alive);
  }
  return most;
}

// Greedy by size (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020): the largest
// block first. Of blocks of a size the one that lives on longest comes first, since what the forward part makes is
// freed in the opposite order. Where that leaves gaps, two other orders are tried, and the best is taken.
uint64_t assign_offsets(std::vector<ArenaBlock>& blocks, uint64_t alignment) {
  using Order = bool (*)(const ArenaBlock&, const ArenaBlock&);
  constexpr std::array<Order, 3> kOrders = {
      [](const ArenaBlock& a, const ArenaBlock& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.last > b.last; },
      [](const ArenaBlock& a, const ArenaBlock& b) { return a.bytes > b.bytes; },
      [](const ArenaBlock& a, const ArenaBlock& b) { return a.last - a.first > b.last - b.first; },
  };
  const uint64_t least = most_alive(blocks, alignment);
  std::vector<ArenaBlock> best;
  uint64_t best_total = std::numeric_limits<uint64_t>::max();
  for (const Order before : kOrders) {
    std::vector<std::size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return before(blocks[a], blocks[b]); });
    const uint64_t total = place_in_order(blocks, order, alignment);
    if (total < best_total) {
      best_total = total;
      best = blocks;
    }
    if (best_total == least) break;
  }
  blocks = std::move(best);
  return best_total;
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, std::span<const uint64_t> workspace_bytes, uint64_t alignment,
                       const std::vector<NodeRange>& runs, InPlace in_place) {
  const Units units(graph, runs);
  Blocks formed = form_blocks(graph, units, internal_values(graph, runs), in_place);
  std::vector<std::size_t> workspace_block(graph.nodes().size());
  for (std::size_t n = 0; n < workspace_bytes.size(); ++n) {
    if (workspace_bytes[n] == 0) continue;
    workspace_block[n] = formed.blocks.size();
    const Lifetime& unit = units.of(n);
    formed.blocks.push_back(
        {.value = kNoValue, .offset = 0, .bytes = workspace_bytes[n], .first = unit.first, .last = unit.last});
  }

  MemoryPlan plan;
  plan.arena_bytes = assign_offsets(formed.blocks, std::max<uint64_t>(alignment, 1));
  plan.value_offset.assign(graph.values().size(), -1);
  for (std::size_t v = 0; v < graph.values().size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    const auto found = formed.of_root.find(graph.root(id));
    if (found == formed.of_root.end()) continue;
    plan.value_offset[v] = static_cast<int64_t>(formed.blocks[found->second].offset) + graph.root_offset(id);
  }
  plan.workspace_offset.assign(graph.nodes().size(), -1);
  for (std::size_t n = 0; n < workspace_bytes.size(); ++n) {
    if (workspace_bytes[n] != 0) {
      plan.workspace_offset[n] = static_cast<int64_t>(formed.blocks[workspace_block[n]].offset);
    }
  }
  plan.blocks = std::move(formed.blocks);
  return plan;
}

}  // namespace gpunn::compiler
