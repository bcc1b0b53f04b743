#include <gpunn/plan.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "compiler/recompute.hpp"
#include "config/checked_backends.hpp"
#include "config/layer_names.hpp"
#include "ops/op.hpp"
#include "training/evaluation_part.hpp"
#include "training/notices.hpp"
#include "training/residency.hpp"
#include "training/session.hpp"
#include "training/transfer.hpp"

namespace gpunn {

namespace {

using graph::Graph;
using graph::Node;
using graph::Storage;
using graph::ValueId;

std::string named(const Graph& graph, ValueId id) {
  return graph.value(id).name + " " + to_string(graph.value(id).type);
}

PlannedOp planned_op(const execution::CompiledProgram& program, std::size_t n, const std::vector<std::string>& chain) {
  const Node& node = program.graph.nodes()[n];
  const ops::OpInfo& info = ops::op_info(node.op);
  PlannedOp op;
  op.op = info.name;
  op.name = node.name;
  op.backend = chain[static_cast<std::size_t>(program.placements[n].level)];
  op.kernel = program.placements[n].kernel;
  op.refusal = program.placements[n].reason;
  op.attributes = info.describe != nullptr ? info.describe(node.attrs) : "";
  for (const ValueId input : node.inputs) op.inputs.push_back(named(program.graph, input));
  for (const ValueId output : node.outputs) op.outputs.push_back(named(program.graph, output));
  op.workspace_bytes = program.placements[n].workspace_bytes;
  op.flops = ops::flops_of(program.graph.signature(node));
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

// Of each block or layer, in the order of the step, the ops that compute its activations again.
std::vector<PlannedRecomputation> recomputations(const execution::CompiledProgram& program,
                                                 const std::vector<std::string>& patterns) {
  std::vector<PlannedRecomputation> result;
  for (const Node& node : program.graph.nodes()) {
    if (!node.name.ends_with(compiler::kRecomputedSuffix)) continue;
    const std::string layer = node.name.substr(0, node.name.size() - compiler::kRecomputedSuffix.size());
    const std::string_view name = config::outermost_match(patterns, layer);
    if (name.empty()) continue;
    const auto found = std::ranges::find(result, name, &PlannedRecomputation::name);
    if (found == result.end()) {
      result.push_back({.name = std::string(name), .ops = 1});
    } else {
      ++found->ops;
    }
  }
  return result;
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

PlanReport plan(const Experiment& experiment) {
  config::require_one_backend(experiment.backend, "a plan");
  Dataset dataset = training::sizes_for_training(experiment.data);
  const std::string data = training::data_text(dataset);
  const std::optional<training::Start> start = training::find_start(experiment, training::sample_shape(dataset));
  training::Session session = training::Session::open(experiment, std::move(dataset));
  const execution::CompiledProgram& program = session.training();
  PlanReport report;
  report.data = data;
  if (start) report.start = start->report.text();
  for (const std::string& notice :
       {session.notice(), training::schedule_notice(session.schedule()),
        training::moving_statistics_notice(experiment, session.layout(), session.buffers())}) {
    report.notice = training::joined(report.notice, notice);
  }
  report.backend = session.backend().name();
  report.chain = session.backend().chain();
  for (std::size_t n = 0; n < program.graph.nodes().size(); ++n) {
    report.ops.push_back(planned_op(program, n, report.chain));
  }
  append_subgraphs(program, report);
  report.tensors = arena_tensors(program);
  append_persistent(program, report.tensors);
  report.parameters = session.layout().count();
  report.trainable = session.layout().trained_count();
  report.arena_bytes = session.arena_bytes();
  report.recomputed = recomputations(program, experiment.recompute);
  report.kept_arena_bytes = report.arena_bytes;
  if (!report.recomputed.empty()) {
    Experiment keeping = experiment;
    keeping.recompute.clear();
    report.kept_arena_bytes = session.arena_bytes_of(keeping);
  }
  report.persistent_bytes = session.persistent_bytes();
  report.data_bytes = session.data_bytes();
  report.residency = training::name_of(session.data().residency());
  report.peak_bytes = report.arena_bytes + report.persistent_bytes;
  return report;
}

}  // namespace gpunn
