#include "eager/plan.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <utility>

#include "compiler/decompose.hpp"
#include "compiler/fuse.hpp"
#include "compiler/layout.hpp"
#include "execution/op_text.hpp"
#include "execution/steps/compiler.hpp"
#include "ops/op.hpp"

namespace gpunn::eager {

using graph::ValueId;

namespace {

// As execution::lower does it, but for the layouts: the caller has chosen those of its arrays, and an op alone is not
// worth two copies.
graph::Graph lowered(graph::Graph graph, const execution::Backend& backend) {
  const compiler::Provider provider = [&backend](const graph::OpSignature& signature) {
    return backend.place(signature).rank;
  };
  compiler::fuse(graph, provider);
  compiler::choose_layouts(
      graph, [&](const graph::OpSignature& signature) -> compiler::Offer { return {.level = provider(signature)}; });
  compiler::decompose_unserved(graph, provider);
  return graph;
}

uint64_t round_up(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

Plan::Plan(execution::Backend& backend, Program program, uint64_t staged)
    : alignments_(program.externals.size(), 1), read_(std::move(program.read)), written_(std::move(program.written)) {
  const execution::CompiledProgram compiled =
      execution::place_and_plan(lowered(std::move(program.graph), backend), backend, execution::FuseSubgraphs::none);
  const uint64_t alignment = backend.info().alignment;
  scratch_bytes_ = round_up(compiled.plan.arena_bytes, alignment);
  std::vector<uint64_t> staging(program.externals.size(), 0);
  for (std::size_t i = 0; i < program.externals.size(); ++i) {
    if ((staged >> i & 1U) == 0 || !uses(i)) continue;
    const Staging one{
        .external = i, .offset = scratch_bytes_, .bytes = compiled.graph.value(program.externals[i]).type.bytes()};
    if (read_[i]) loads_.push_back(one);
    if (written_[i]) stores_.push_back(one);
    staging[i] = one.offset;
    scratch_bytes_ += round_up(std::max<uint64_t>(one.bytes, 1), alignment);
  }
  add_steps(backend, compiled.graph, compiled.placements, compiled.plan.value_offset, compiled.plan.workspace_offset,
            program.externals);
  for (Step& step : steps_) {
    for (Place& place : step.places) {
      if (place.external < 0 || (staged >> place.external & 1U) == 0) continue;
      place = {.external = -1, .offset = staging[static_cast<std::size_t>(place.external)] + place.offset};
    }
  }
}

void Plan::add_steps(execution::Backend& backend, const graph::Graph& graph,
                     const std::vector<execution::Placement>& placements, const std::vector<int64_t>& value_offset,
                     const std::vector<int64_t>& workspace_offset, const std::vector<ValueId>& externals) {
  const std::vector<std::string> chain = backend.chain();
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const graph::Node& node = graph.nodes()[n];
    const execution::Placement& placement = placements[n];
    const graph::OpSignature signature = graph.signature(node);
    Step& step = steps_.emplace_back();
    step.kernel = backend.create(signature, placement);
    step.what = execution::text_of(signature);
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const ValueId id : *ids) {
        step.tensors.push_back(execution::abi_tensor(graph.value(id).type, nullptr));
        const ValueId root = graph.root(id);
        const auto external = std::ranges::find(externals, root);
        const auto from_root = static_cast<uint64_t>(graph.root_offset(id));
        if (external == externals.end()) {
          step.places.push_back({-1, static_cast<uint64_t>(value_offset[static_cast<std::size_t>(id)])});
          continue;
        }
        const auto i = static_cast<std::size_t>(external - externals.begin());
        step.places.push_back({static_cast<int>(i), from_root});
        alignments_[i] = std::max(alignments_[i], backend.tensor_alignment(placement.level));
      }
    }
    step.args.struct_size = sizeof(step.args);
    step.args.n_inputs = static_cast<uint32_t>(node.inputs.size());
    step.args.n_outputs = static_cast<uint32_t>(node.outputs.size());
    step.args.workspace_bytes = placement.workspace_bytes;
    if (placement.workspace_bytes > 0) step.workspace = static_cast<uint64_t>(workspace_offset[n]);
    capturable_ = capturable_ && (placement.flags & GPUNN_OP_CAPTURABLE) != 0;
    concurrent_ = concurrent_ && backend.concurrent(placement.level);
    explanation_.push_back(chain[static_cast<std::size_t>(placement.level)] + ": " + step.what +
                           (placement.kernel.empty() ? "" : ", kernel " + placement.kernel));
  }
  // Tensors stay where they are from here on.
  for (Step& step : steps_) {
    for (const gpunn_tensor& tensor : step.tensors) step.pointers.push_back(&tensor);
    step.args.inputs = step.pointers.data();
    step.args.outputs = step.pointers.data() + step.args.n_inputs;
  }
}

void Plan::enqueue(std::span<void* const> externals, void* scratch, const execution::CallerStream& stream) {
  auto* const base = static_cast<std::byte*>(scratch);
  for (const Staging& one : loads_) stream.copy(base + one.offset, externals[one.external], one.bytes);
  for (Step& step : steps_) {
    for (std::size_t i = 0; i < step.tensors.size(); ++i) {
      const Place& place = step.places[i];
      auto* const root =
          place.external < 0 ? base : static_cast<std::byte*>(externals[static_cast<std::size_t>(place.external)]);
      step.tensors[i].data = root + place.offset;
    }
    step.args.workspace = step.args.workspace_bytes > 0 ? base + step.workspace : nullptr;
    step.kernel.enqueue(step.args, step.what, stream);
  }
  for (const Staging& one : stores_) stream.copy(externals[one.external], base + one.offset, one.bytes);
}

}  // namespace gpunn::eager
