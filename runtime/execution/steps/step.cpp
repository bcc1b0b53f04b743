#include "execution/steps/step.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "execution/op_text.hpp"

namespace gpunn::execution {

namespace {

MemoryRange range_at(const void* address, uint64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  return {begin, begin + bytes};
}

std::vector<gpunn_tensor> tensors(const graph::Graph& graph, const std::vector<graph::ValueId>& ids,
                                  const BoundMemory& memory, const std::string& what) {
  std::vector<gpunn_tensor> result;
  for (const graph::ValueId id : ids) {
    void* const address = memory.addresses[static_cast<std::size_t>(id)];
    if (address == nullptr) {
      throw Error(what + " uses value '" + graph.value(id).name + "', which has no place in the memory plan");
    }
    result.push_back(abi_tensor(graph.value(id).type, address));
  }
  return result;
}

// The scratch memory of the op or subgraph that begins with this node.
void* workspace_at(std::size_t node, uint64_t bytes, const BoundMemory& memory, const std::string& what) {
  if (bytes == 0) return nullptr;
  const int64_t offset = memory.plan.workspace_offset[node];
  const uint64_t room = memory.plan.arena_bytes;
  if (offset < 0 || bytes > room || static_cast<uint64_t>(offset) > room - bytes) {
    throw Error("the memory plan holds no workspace of " + std::to_string(bytes) + " bytes for " + what);
  }
  return static_cast<std::byte*>(memory.arena) + offset;
}

// A bit for each input whose bytes never change.
uint64_t constant_inputs(const graph::Graph& graph, const graph::Node& node) {
  uint64_t mask = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(node.inputs.size(), 64); ++i) {
    if (graph.is_constant(node.inputs[i])) mask |= uint64_t{1} << i;
  }
  return mask;
}

// A value that is used outside the subgraph must have memory.
void require_outer_values(const graph::Graph& graph, const compiler::NodeRange& nodes,
                          const std::vector<bool>& internal, const BoundMemory& memory, const std::string& what) {
  const auto require = [&](graph::ValueId id) {
    const auto v = static_cast<std::size_t>(id);
    if (internal[v] || memory.addresses[v] != nullptr) return;
    throw Error(what + " use value '" + graph.value(id).name + "', which has no place in the memory plan");
  };
  for (std::size_t n = nodes.first; n < nodes.end(); ++n) {
    for (const graph::ValueId id : graph.nodes()[n].inputs) require(id);
    for (const graph::ValueId id : graph.nodes()[n].outputs) require(id);
  }
}

}  // namespace

Step::Step(Backend& backend, const graph::Graph& graph, std::size_t node, const Placement& placement,
           const BoundMemory& memory)
    : nodes_{node, 1},
      level_(placement.level),
      flags_(placement.flags),
      what_(text_of(graph.nodes()[node])),
      workspace_(range_at(workspace_at(node, placement.workspace_bytes, memory, what_), placement.workspace_bytes)),
      work_(OpWork{
          backend.create(graph.signature(graph.nodes()[node]), placement, constant_inputs(graph, graph.nodes()[node])),
          OpArguments(tensors(graph, graph.nodes()[node].inputs, memory, what_),
                      tensors(graph, graph.nodes()[node].outputs, memory, what_),
                      workspace_at(node, placement.workspace_bytes, memory, what_), placement.workspace_bytes)}) {}

Step::Step(Backend& backend, const graph::Graph& graph, const Subgraph& subgraph, const SubgraphContext& program,
           const BoundMemory& memory)
    : nodes_(subgraph.nodes),
      level_(subgraph.level),
      flags_(subgraph.flags),
      what_(text_of(graph, subgraph.nodes)),
      workspace_(range_at(workspace_at(subgraph.nodes.first, subgraph.workspace_bytes, memory, what_),
                          subgraph.workspace_bytes)),
      work_(SubgraphWork{(require_outer_values(graph, subgraph.nodes, program.internal, memory, what_),
                          backend.create(graph, subgraph, program.description)),
                         SubgraphArguments(graph, subgraph.nodes, memory.addresses,
                                           workspace_at(subgraph.nodes.first, subgraph.workspace_bytes, memory, what_),
                                           subgraph.workspace_bytes)}) {}

void Step::enqueue() {
  if (auto* const op = std::get_if<OpWork>(&work_)) {
    op->kernel.enqueue(op->arguments.get(), what_);
  } else {
    auto& fused = std::get<SubgraphWork>(work_);
    fused.subgraph.enqueue(fused.arguments.get(), what_);
  }
}

void Step::enqueue(const Streams& streams, std::size_t stream) {
  if (auto* const op = std::get_if<OpWork>(&work_)) {
    op->kernel.enqueue(op->arguments.get(), what_, streams, stream);
  } else {
    auto& fused = std::get<SubgraphWork>(work_);
    fused.subgraph.enqueue(fused.arguments.get(), what_, streams, stream);
  }
}

MemoryAccess Step::access(const graph::Graph& graph, const std::vector<void*>& addresses) const {
  MemoryAccess access;
  const auto add = [&](std::vector<MemoryRange>& ranges, graph::ValueId id) {
    const void* const address = addresses[static_cast<std::size_t>(id)];
    if (address != nullptr) ranges.push_back(range_at(address, graph.value(id).type.bytes()));
  };
  for (std::size_t n = nodes_.first; n < nodes_.end(); ++n) {
    for (const graph::ValueId id : graph.nodes()[n].inputs) add(access.reads, id);
    for (const graph::ValueId id : graph.nodes()[n].outputs) add(access.writes, id);
  }
  if (workspace_.begin < workspace_.end) access.writes.push_back(workspace_);
  return access;
}

}  // namespace gpunn::execution
