#include "inference/engine/engine.hpp"

#include <algorithm>
#include <utility>

#include "inference/eight_bits/quantizers.hpp"
#include "inference/engine_file/saved_engine.hpp"
#include "ops/op.hpp"

namespace gpunn::inference {

using graph::Graph;
using graph::Node;
using graph::ValueId;

namespace {

using Details = std::vector<std::string>;

Details norms_of(const ForwardProgram& forward) {
  Details details;
  for (const FoldedNorm& norm : forward.norms) details.push_back(forward.graph.value(norm.weight).name);
  return details;
}

Details eight_bits_of(const ForwardProgram& forward) {
  Details details;
  for (const EightBitOp& one : forward.eight_bits) {
    details.push_back(one.name + ": " + std::string(ops::op_info(one.op).name));
  }
  return details;
}

Details composites_of(const Graph& g) {
  Details details;
  for (const Node& node : g.nodes()) {
    const ops::OpInfo& info = ops::op_info(node.op);
    if (info.composite) details.push_back(node.name + ": " + std::string(info.name));
  }
  return details;
}

// Values of ops that lie channels-last.
Details turned_of(const Graph& g) {
  Details details;
  for (const Node& node : g.nodes()) {
    for (const ValueId output : node.outputs) {
      if (g.value(output).type.layout == Layout::channels_last) details.push_back(g.value(output).name);
    }
  }
  return details;
}

Details names_of(const std::vector<Node>& nodes) {
  Details details;
  for (const Node& node : nodes) details.push_back(node.name + ": " + std::string(ops::op_info(node.op).name));
  return details;
}

// Results that lie where an input of their op did.
Details in_place_of(const execution::CompiledProgram& program) {
  const Graph& g = program.graph;
  Details details;
  for (const Node& node : g.nodes()) {
    for (const ValueId output : node.outputs) {
      const auto offset_of = [&](ValueId id) { return program.plan.value_offset[static_cast<std::size_t>(id)]; };
      const bool taken = offset_of(output) >= 0 && std::ranges::any_of(node.inputs, [&](ValueId input) {
                           return g.root(input) != g.root(output) && offset_of(input) == offset_of(output);
                         });
      if (taken) details.push_back(g.value(output).name);
    }
  }
  return details;
}

}  // namespace

EngineProgram build_engine(const ForwardModel& model, int64_t rows, const execution::Backend& backend) {
  if (model.saved != nullptr) {
    return {.constants = {}, .program = model.saved->programs.at(model.saved->planned_rows(rows)), .passes = {}};
  }
  const EnginePasses& passes = model.passes;
  EngineProgram engine;
  const auto report = [&](EnginePassId pass, Details details) {
    const auto changes = static_cast<int64_t>(details.size());
    engine.passes.push_back({.pass = pass, .on = passes.on(pass), .changes = changes, .details = std::move(details)});
  };
  ForwardProgram forward = forward_program(model, rows, BatchNorms::folded, &backend);
  report(EnginePassId::fold_batch_norm, norms_of(forward));
  report(EnginePassId::eight_bits, eight_bits_of(forward));
  report(EnginePassId::remove_dead_ops,
         passes.on(EnginePassId::remove_dead_ops) ? remove_dead_ops(forward.graph) : Details{});

  const execution::CompileOptions options{
      .fuse = passes.on(EnginePassId::fuse),
      .layouts = passes.on(EnginePassId::layout),
      .in_place = passes.on(EnginePassId::in_place) ? compiler::InPlace::allowed : compiler::InPlace::none};
  const execution::Backend* const only = &backend;
  Graph lowered = execution::lower(std::move(forward.graph), {&only, 1}, options);
  report(EnginePassId::fuse, options.fuse ? composites_of(lowered) : Details{});
  report(EnginePassId::layout, turned_of(lowered));

  Graph making;
  if (passes.on(EnginePassId::fold_constants)) making = fold_constants(lowered);
  report(EnginePassId::fold_constants, names_of(making.nodes()));
  if (!making.nodes().empty()) {
    engine.constants = execution::place_and_plan(std::move(making), backend, execution::FuseSubgraphs::none, options);
  }
  Details in_outputs;
  if (passes.on(EnginePassId::in_place)) in_outputs = write_outputs_directly(lowered);
  engine.program = execution::place_and_plan(std::move(lowered), backend, execution::FuseSubgraphs::allowed, options);
  Details in_place = in_place_of(engine.program);
  in_place.insert(in_place.end(), in_outputs.begin(), in_outputs.end());
  report(EnginePassId::in_place, std::move(in_place));
  return engine;
}

}  // namespace gpunn::inference
