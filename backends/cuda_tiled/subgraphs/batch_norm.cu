#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/elementwise.hpp"
#include "cuda_common/stream.hpp"
#include "normalization/normalization_resident.hpp"
#include "subgraphs/batch_norm.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;
using backends::Refusal;

// The ids of what the subgraph reads and writes; -1: nothing of the kind.
struct NormSubgraph {
  std::size_t ops = 0;  // 0: there is none
  BatchNormPlan plan;
  bool backward = false;
  int32_t dtype = GPUNN_F32;     // of what is normalised
  std::vector<int32_t> inputs;   // of the batch norm
  std::vector<int32_t> outputs;  // of the batch norm
  int32_t other = -1;            // what is added to y, or to dy
  int32_t y = -1;                // what the subgraph ends in, forward; of the ReLU, backward
  int32_t dy = -1;               // what comes in, backward
  int32_t masked = -1;           // what of it goes on through the ReLU, where others need that
};

class Matcher {
 public:
  Matcher(const ProgramDesc& desc, std::size_t first, std::size_t limit)
      : desc_(desc), first_(first), limit_(std::min(limit, desc.ops() - first)) {}

  // Throws Refusal.
  NormSubgraph run() const {
    if (is(0, GPUNN_OP_BATCH_NORM)) return forward();
    if (is(0, GPUNN_OP_RELU_BACKWARD)) return backward(0);
    if (is(0, GPUNN_OP_ADD) && is(1, GPUNN_OP_RELU_BACKWARD)) return backward(1);
    return {};
  }

 private:
  bool is(std::size_t i, int32_t op) const { return i < limit_ && desc_.op(first_ + i).op() == op; }
  std::vector<int32_t> inputs(std::size_t i) const {
    const auto ids = desc_.inputs(first_ + i);
    return {ids.begin(), ids.end()};
  }
  std::vector<int32_t> outputs(std::size_t i) const {
    const auto ids = desc_.outputs(first_ + i);
    return {ids.begin(), ids.end()};
  }
  // Whether only the first `count` ops have to do with the value.
  bool within(int32_t id, std::size_t count) const {
    return desc_.value(id).root == id && !desc_.needed_after(id, first_ + count);
  }

  // Whether all of these are needed after the subgraph, and so have memory.
  bool all_needed(const std::vector<int32_t>& ids, std::size_t begin, std::size_t count) const {
    return std::all_of(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end(),
                       [&](int32_t id) { return desc_.needed_after(id, first_ + count); });
  }

  NormSubgraph forward() const {
    NormSubgraph run;
    run.inputs = inputs(0);
    run.outputs = outputs(0);
    const int32_t normalised = run.outputs[0];
    if (is(1, GPUNN_OP_RELU) && inputs(1)[0] == normalised && within(normalised, 2)) {
      backends::map_size(desc_.op(first_ + 1));
      run.y = outputs(1)[0];
      run.ops = 2;
    } else if (is(1, GPUNN_OP_ADD) && is(2, GPUNN_OP_RELU)) {
      const std::vector<int32_t> terms = inputs(1);
      const int32_t sum = outputs(1)[0];
      if (terms[0] == terms[1] || (terms[0] != normalised && terms[1] != normalised)) return {};
      if (inputs(2)[0] != sum || !within(normalised, 3) || !within(sum, 3)) return {};
      backends::map_size(desc_.op(first_ + 1));
      backends::map_size(desc_.op(first_ + 2));
      run.other = terms[0] == normalised ? terms[1] : terms[0];
      run.y = outputs(2)[0];
      run.ops = 3;
    } else {
      return {};
    }
    if (!all_needed(run.outputs, 1, run.ops) || !all_needed({run.y}, 0, run.ops)) return {};
    run.plan = batch_norm_plan(backends::batch_norm_of(desc_.op(first_)));
    run.dtype = desc_.op(first_).input(0).dtype;
    return run;
  }

  NormSubgraph backward(std::size_t relu) const {
    const std::size_t norm = relu + 1;
    if (!is(norm, GPUNN_OP_BATCH_NORM_BACKWARD)) return {};
    NormSubgraph run;
    run.backward = true;
    run.ops = norm + 1;
    run.dy = inputs(relu)[0];
    run.y = inputs(relu)[1];
    if (relu == 1) {
      const int32_t sum = outputs(0)[0];
      if (run.dy != sum || run.y == sum || !within(sum, run.ops)) return {};
      backends::map_size(desc_.op(first_));
      run.dy = inputs(0)[0];
      run.other = inputs(0)[1];
    }
    const int32_t masked = outputs(relu)[0];
    run.inputs = inputs(norm);
    run.outputs = outputs(norm);
    if (run.inputs[0] != masked || run.inputs[1] == masked) return {};
    if (!all_needed(run.outputs, 0, run.ops)) return {};
    if (desc_.needed_after(masked, first_ + run.ops)) run.masked = masked;
    backends::map_size(desc_.op(first_ + relu));
    run.plan = batch_norm_plan(backends::batch_norm_backward_of(desc_.op(first_ + norm)));
    run.dtype = desc_.op(first_ + norm).input(0).dtype;
    return run;
  }

  const ProgramDesc& desc_;
  std::size_t first_;
  std::size_t limit_;
};

NormSubgraph match(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  try {
    return Matcher(desc, first, limit).run();
  } catch (const Refusal&) {
    return {};
  }
}

template <class T>
void run_forward(const NormSubgraph& run, cudaStream_t stream, const SubgraphArgs& args) {
  const auto in = [&](std::size_t i) { return args.data<float>(run.inputs[i]); };
  const auto out = [&](std::size_t i) { return args.data<float>(run.outputs[i]); };
  auto* const parts = args.workspace<float2>();
  const Forward<T> f{.x = args.data<T>(run.inputs[0]),
                     .gamma = in(1),
                     .beta = in(2),
                     .count = run.plan.shape.counted ? args.data<int32_t>(run.inputs[5]) : nullptr,
                     .parts = parts,
                     .residual = run.other < 0 ? nullptr : args.data<T>(run.other),
                     .relu = true,
                     .y = args.data<T>(run.y),
                     .mean = out(1),
                     .rstd = out(2),
                     .running_mean = out(3),
                     .running_var = out(4),
                     .epsilon = run.plan.shape.epsilon,
                     .momentum = run.plan.shape.momentum};
  run_batch_norm(run.plan, f, parts, stream);
}

template <class T>
void run_backward(const NormSubgraph& run, cudaStream_t stream, const SubgraphArgs& args) {
  const auto in = [&](std::size_t i) { return args.data<float>(run.inputs[i]); };
  const auto out = [&](std::size_t i) { return args.data<float>(run.outputs[i]); };
  const Backward<T> b{.dy = args.data<T>(run.dy),
                      .more_dy = run.other < 0 ? nullptr : args.data<T>(run.other),
                      .relu_y = args.data<T>(run.y),
                      .masked = run.masked < 0 ? nullptr : args.data<T>(run.masked),
                      .x = args.data<T>(run.inputs[1]),
                      .gamma = in(2),
                      .mean = in(3),
                      .rstd = in(4),
                      .count = run.plan.shape.counted ? args.data<int32_t>(run.inputs[5]) : nullptr,
                      .parts = args.workspace<float2>(),
                      .dx = args.data<T>(run.outputs[0]),
                      .dgamma = out(1),
                      .dbeta = out(2)};
  run_batch_norm_backward(run.plan, b, stream);
}

template <class T>
void run_norm(const NormSubgraph& run, cudaStream_t stream, const SubgraphArgs& args) {
  if (run.backward) return run_backward<T>(run, stream, args);
  run_forward<T>(run, stream, args);
}

}  // namespace

SubgraphSupport query_norm(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  const NormSubgraph run = match(desc, first, limit);
  if (run.ops == 0) return SubgraphSupport::no();
  return SubgraphSupport::yes(run.ops, run.backward ? "fused batch norm backward" : "fused batch norm",
                              run.plan.workspace_bytes);
}

std::unique_ptr<Subgraph> create_norm(const ProgramDesc& desc, std::size_t first, std::size_t count) {
  const NormSubgraph run = match(desc, first, count);
  if (run.ops != count) throw Failure(GPUNN_INVALID_ARGUMENT, "not a batch norm that was fused");
  return make_subgraph([run](Stream& stream, const SubgraphArgs& args) {
    const cudaStream_t native = cuda::native(stream);
    switch (run.dtype) {
      case GPUNN_BF16:
        return run_norm<__nv_bfloat16>(run, native, args);
      case GPUNN_F16:
        return run_norm<__half>(run, native, args);
      default:
        return run_norm<float>(run, native, args);
    }
  });
}

}  // namespace gpunn::cuda_tiled
