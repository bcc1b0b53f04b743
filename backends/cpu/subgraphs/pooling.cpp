#include "subgraphs/pooling.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <vector>

#include "common/subgraphs/pooling.hpp"
#include "grain.hpp"

namespace gpunn::cpu {
namespace {

using plugin::Device;
using plugin::OpDesc;
using plugin::ProgramDesc;
using plugin::SubgraphArgs;
using plugin::SubgraphSupport;
using Tensors = std::vector<const gpunn_tensor*>;

constexpr int64_t kVectorBytes = 64;

// The two ops in the other order. `desc` and `args` say in which tensors; the gradient between them is in the
// workspace.
struct TurnedOps {
  backends::PoolSubgraph run;
  gpunn_tensor masked;           // of dpooled's type, behind the ops' workspace
  uint64_t workspace_bytes = 0;  // of either op

  uint64_t all_bytes() const {
    const auto bytes = static_cast<uint64_t>(plugin::element_count(masked)) * ops::dtype_bytes(masked.dtype);
    return workspace_bytes + bytes;
  }

  // of(id): the tensor of a value.
  template <class Of>
  Tensors mask_inputs(const Of& of) const {
    return {of(run.dpooled), of(run.pooled)};
  }
  template <class Of>
  Tensors mask_outputs(const Of& of, const gpunn_tensor& between) const {
    return run.db < 0 ? Tensors{&between} : Tensors{&between, of(run.db)};
  }
  template <class Of>
  Tensors pool_inputs(const Of& of, const gpunn_tensor& between) const {
    return {&between, of(run.y), of(run.pooled)};
  }
};

// An op of the program on other tensors.
gpunn_op_desc with_tensors(const OpDesc& op, const Tensors& inputs, const Tensors& outputs) {
  gpunn_op_desc desc = op.raw();
  desc.n_inputs = static_cast<uint32_t>(inputs.size());
  desc.n_outputs = static_cast<uint32_t>(outputs.size());
  desc.inputs = inputs.data();
  desc.outputs = outputs.data();
  desc.kernel = nullptr;
  return desc;
}

gpunn_op_args args_of(const Tensors& inputs, const Tensors& outputs, void* workspace, uint64_t bytes) {
  gpunn_op_args args{};
  args.struct_size = sizeof(args);
  args.n_inputs = static_cast<uint32_t>(inputs.size());
  args.n_outputs = static_cast<uint32_t>(outputs.size());
  args.inputs = inputs.data();
  args.outputs = outputs.data();
  args.workspace = workspace;
  args.workspace_bytes = bytes;
  return args;
}

// Calls body(the description of the mask, of the pooling).
template <class Body>
void describe(const TurnedOps& ops, const ProgramDesc& desc, std::size_t first, const Body& body) {
  const auto of = [&](int32_t id) { return &desc.tensor(id); };
  const Tensors mask_in = ops.mask_inputs(of), mask_out = ops.mask_outputs(of, ops.masked);
  const Tensors pool_in = ops.pool_inputs(of, ops.masked), pool_out = {of(ops.run.dx)};
  const gpunn_op_desc mask = with_tensors(desc.op(first + 1), mask_in, mask_out);
  const gpunn_op_desc pool = with_tensors(desc.op(first), pool_in, pool_out);
  body(OpDesc(mask), OpDesc(pool));
}

TurnedOps find(const Device& device, const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  TurnedOps found{.run = backends::match_pool(desc, first, limit), .masked = {}};
  if (found.run.ops == 0) return found;
  if (!found.run.backward || found.run.mean) {
    found.run.ops = 0;
    return found;
  }
  found.masked = desc.tensor(found.run.dpooled);
  describe(found, desc, first, [&](const OpDesc& mask, const OpDesc& pool) {
    const plugin::Support of_mask = device.choose(mask).support, of_pool = device.choose(pool).support;
    if (of_mask.score <= 0 || of_pool.score <= 0) found.run.ops = 0;
    const auto bytes = static_cast<int64_t>(std::max(of_mask.workspace_bytes, of_pool.workspace_bytes));
    found.workspace_bytes = static_cast<uint64_t>(round_up(bytes, kVectorBytes));
  });
  return found;
}

}  // namespace

SubgraphSupport query_pool(const Device& device, const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  const TurnedOps found = find(device, desc, first, limit);
  if (found.run.ops == 0) return SubgraphSupport::no();
  return SubgraphSupport::yes(found.run.ops, "fused pooling backward", found.all_bytes());
}

std::unique_ptr<plugin::Subgraph> create_pool(const Device& device, const ProgramDesc& desc, std::size_t first,
                                              std::size_t count) {
  const TurnedOps found = find(device, desc, first, count);
  if (found.run.ops != count) throw plugin::Failure(GPUNN_INVALID_ARGUMENT, "not a pooling that was fused");
  std::shared_ptr<plugin::Kernel> mask, pool;
  describe(found, desc, first, [&](const OpDesc& mask_desc, const OpDesc& pool_desc) {
    mask = device.choose(mask_desc).factory->create(mask_desc);
    pool = device.choose(pool_desc).factory->create(pool_desc);
  });
  return plugin::make_subgraph([found, mask, pool](plugin::Stream& stream, const SubgraphArgs& args) {
    const auto of = [&](int32_t id) { return &args.tensor(id); };
    gpunn_tensor between = found.masked;
    between.data = args.workspace<char>() + found.workspace_bytes;
    const Tensors mask_in = found.mask_inputs(of), mask_out = found.mask_outputs(of, between);
    const Tensors pool_in = found.pool_inputs(of, between), pool_out = {of(found.run.dx)};
    const gpunn_op_args mask_args = args_of(mask_in, mask_out, args.workspace<void>(), found.workspace_bytes);
    const gpunn_op_args pool_args = args_of(pool_in, pool_out, args.workspace<void>(), found.workspace_bytes);
    mask->enqueue(stream, plugin::OpArgs(mask_args));
    pool->enqueue(stream, plugin::OpArgs(pool_args));
  });
}

}  // namespace gpunn::cpu
