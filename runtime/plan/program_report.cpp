#include "plan/program_report.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/op_attributes.hpp"
#include "ops/op.hpp"

namespace gpunn::training {

namespace {

using graph::Graph;
using graph::Node;
using graph::Storage;
using graph::ValueId;

std::string named(const Graph& graph, ValueId id) {
  return graph.value(id).name + " " + to_string(graph.value(id).type);
}

// The bytes of the arena that are in use while the op runs.
uint64_t arena_bytes_at(const execution::CompiledProgram& program, std::size_t n) {
  const auto at = static_cast<int32_t>(n);
  uint64_t bytes = 0;
  for (const compiler::ArenaBlock& block : program.plan.blocks) {
    if (block.first <= at && at <= block.last) bytes += block.bytes;
  }
  return bytes;
}

PlannedOp planned_op(const execution::CompiledProgram& program, std::size_t n, const execution::Backend& backend,
                     const std::vector<std::string>& chain) {
  const Node& node = program.graph.nodes()[n];
  const ops::OpInfo& info = ops::op_info(node.op);
  PlannedOp op;
  op.op = info.name;
  op.name = node.name;
  op.backend = chain[static_cast<std::size_t>(program.placements[n].level)];
  op.kernel = backend.kernel_name(program.graph.signature(node), program.placements[n]);
  op.refusal = program.placements[n].reason;
  op.attributes = graph::attributes_text(node.op, node.attrs);
  for (const ValueId input : node.inputs) op.inputs.push_back(named(program.graph, input));
  for (const ValueId output : node.outputs) op.outputs.push_back(named(program.graph, output));
  op.workspace_bytes = program.placements[n].workspace_bytes;
  op.flops = ops::flops_of(program.graph.signature(node));
  op.arena_bytes = arena_bytes_at(program, n);
  const bool turned = std::ranges::any_of(
      node.outputs, [&](ValueId id) { return program.graph.value(id).type.layout == Layout::channels_last; });
  op.layout = turned ? "channels_last" : "packed";
  return op;
}

// A fused subgraph's plugin runs its ops, in its scratch memory.
void append_subgraphs(const execution::CompiledProgram& program, PlanReport& report) {
  for (const execution::Subgraph& subgraph : program.subgraphs.taken) {
    const std::string& backend = report.chain[static_cast<std::size_t>(subgraph.level)];
    for (std::size_t n = subgraph.nodes.first; n < subgraph.nodes.end(); ++n) {
      report.ops[n].backend = backend;
      report.ops[n].workspace_bytes = 0;
      report.ops[n].subgraph = static_cast<int64_t>(report.subgraphs.size());
    }
    report.subgraphs.push_back({.name = subgraph.name,
                                .backend = backend,
                                .first_op = static_cast<int64_t>(subgraph.nodes.first),
                                .last_op = static_cast<int64_t>(subgraph.nodes.end()) - 1,
                                .workspace_bytes = subgraph.workspace_bytes});
  }
  report.not_fused = program.subgraphs.reasons;
}

std::string workspace_name(const execution::CompiledProgram& program, std::size_t node) {
  for (const execution::Subgraph& subgraph : program.subgraphs.taken) {
    if (subgraph.nodes.first == node) return "workspace of " + subgraph.name;
  }
  return "workspace of " + program.graph.nodes()[node].name;
}

std::vector<PlannedTensor> arena_tensors(const execution::CompiledProgram& program) {
  std::vector<PlannedTensor> tensors;
  for (const compiler::ArenaBlock& block : program.plan.blocks) {
    const bool workspace = block.value == graph::kNoValue;
    PlannedTensor tensor;
    tensor.name = workspace ? workspace_name(program, static_cast<std::size_t>(block.first))
                            : program.graph.value(block.value).name;
    tensor.type =
        workspace ? TensorType{DType::u8, {static_cast<int64_t>(block.bytes)}} : program.graph.value(block.value).type;
    tensor.storage = name_of(Storage::arena);
    tensor.offset = block.offset;
    tensor.bytes = block.bytes;
    tensor.first_op = block.first;
    tensor.last_op = block.last;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Roots outside the arena: each is an allocation of its own, alive all the time.
void append_persistent(const execution::CompiledProgram& program, std::vector<PlannedTensor>& tensors) {
  std::map<std::string, PlannedTensor> by_name;
  for (std::size_t v = 0; v < program.graph.values().size(); ++v) {
    const graph::Value& value = program.graph.values()[v];
    if (value.storage == Storage::arena || value.view_of != graph::kNoValue) continue;
    PlannedTensor tensor;
    tensor.name = value.name;
    tensor.type = value.type;
    tensor.storage = name_of(value.storage);
    tensor.bytes = value.type.bytes();
    tensor.last_op = static_cast<int64_t>(program.graph.nodes().size()) - 1;
    by_name.emplace(value.name, std::move(tensor));
  }
  for (auto& [name, tensor] : by_name) tensors.push_back(std::move(tensor));
}

}  // namespace

void describe_program(const execution::CompiledProgram& program, const execution::Backend& backend,
                      PlanReport& report) {
  for (std::size_t n = 0; n < program.graph.nodes().size(); ++n) {
    report.ops.push_back(planned_op(program, n, backend, report.chain));
  }
  append_subgraphs(program, report);
  report.tensors = arena_tensors(program);
  append_persistent(program, report.tensors);
}

}  // namespace gpunn::training
