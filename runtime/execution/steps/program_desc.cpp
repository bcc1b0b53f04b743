#include "execution/steps/program_desc.hpp"

#include <gpunn/error.hpp>

#include "compiler/value_use.hpp"

namespace gpunn::execution {

namespace {

int32_t abi_storage(graph::Storage storage) {
  switch (storage) {
    case graph::Storage::arena:
      return GPUNN_STORAGE_ARENA;
    case graph::Storage::parameters:
      return GPUNN_STORAGE_PARAMETERS;
    case graph::Storage::gradients:
      return GPUNN_STORAGE_GRADIENTS;
    case graph::Storage::optimizer:
      return GPUNN_STORAGE_OPTIMIZER;
    case graph::Storage::state:
      return GPUNN_STORAGE_STATE;
    case graph::Storage::data:
      return GPUNN_STORAGE_DATA;
  }
  throw Error("a value of unknown storage");
}

}  // namespace

ProgramDescription::ProgramDescription(const graph::Graph& graph, const BackendOptions& options) {
  desc_.struct_size = sizeof(desc_);
  desc_.precision = abi_precision(options.precision);
  desc_.flags = options.deterministic ? uint32_t{GPUNN_OP_REQUIRE_DETERMINISTIC} : 0U;
  describe_values(graph);
  describe_ops(graph);
}

void ProgramDescription::describe_values(const graph::Graph& graph) {
  const std::size_t count = graph.values().size();
  const std::vector<compiler::ValueUse> uses = compiler::value_uses(graph);
  tensors_.reserve(count);
  values_.reserve(count);
  for (std::size_t v = 0; v < count; ++v) {
    const auto id = static_cast<graph::ValueId>(v);
    tensors_.push_back(abi_tensor(graph.value(id).type, nullptr));
    gpunn_program_value value{};
    value.struct_size = sizeof(value);
    value.storage = abi_storage(graph.value(graph.root(id)).storage);
    value.tensor = &tensors_[v];
    value.offset = graph.root_offset(id);
    value.root = graph.root(id);
    value.first_write = uses[v].first_write;
    value.last_read = uses[v].last_read;
    values_.push_back(value);
    value_pointers_.push_back(&values_[v]);
  }
  desc_.n_values = static_cast<uint32_t>(count);
  desc_.values = value_pointers_.data();
}

void ProgramDescription::describe_ops(const graph::Graph& graph) {
  const std::size_t count = graph.nodes().size();
  operands_.reserve(count);
  op_descs_.reserve(count);
  ops_.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    const graph::Node& node = graph.nodes()[n];
    std::vector<const gpunn_tensor*>& operands = operands_.emplace_back();
    for (const graph::ValueId id : node.inputs) operands.push_back(&tensors_[static_cast<std::size_t>(id)]);
    for (const graph::ValueId id : node.outputs) operands.push_back(&tensors_[static_cast<std::size_t>(id)]);
    gpunn_op_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.op = node.op;
    desc.attrs = node.attrs.data();
    desc.n_inputs = static_cast<uint32_t>(node.inputs.size());
    desc.n_outputs = static_cast<uint32_t>(node.outputs.size());
    desc.inputs = operands.data();
    desc.outputs = operands.data() + node.inputs.size();
    desc.precision = desc_.precision;
    desc.flags = desc_.flags;
    op_descs_.push_back(desc);
    gpunn_program_op op{};
    op.struct_size = sizeof(op);
    op.desc = &op_descs_[n];
    op.inputs = node.inputs.data();
    op.outputs = node.outputs.data();
    ops_.push_back(op);
    op_pointers_.push_back(&ops_[n]);
  }
  desc_.n_ops = static_cast<uint32_t>(count);
  desc_.ops = op_pointers_.data();
}

}  // namespace gpunn::execution
