#include <cstddef>
#include <cstdint>

#include "common/subgraphs/batch_norm.hpp"
#include "cuda_common/stream.hpp"
#include "normalization/normalization_resident.hpp"
#include "subgraphs/batch_norm.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;

// A match and how its batch norm is computed.
struct PlannedNorm : backends::NormSubgraph {
  BatchNormPlan plan;
};

PlannedNorm match(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  PlannedNorm run{backends::match_norm(desc, first, limit), {}};
  if (run.ops > 0) run.plan = batch_norm_plan(run.shape);
  return run;
}

template <class T>
void run_forward(const PlannedNorm& run, cudaStream_t stream, const SubgraphArgs& args) {
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
void run_backward(const PlannedNorm& run, cudaStream_t stream, const SubgraphArgs& args) {
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
void run_norm(const PlannedNorm& run, cudaStream_t stream, const SubgraphArgs& args) {
  if (run.backward) return run_backward<T>(run, stream, args);
  run_forward<T>(run, stream, args);
}

}  // namespace

SubgraphSupport query_norm(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  const PlannedNorm run = match(desc, first, limit);
  if (run.ops == 0) return SubgraphSupport::no();
  return SubgraphSupport::yes(run.ops, run.backward ? "fused batch norm backward" : "fused batch norm",
                              run.plan.workspace_bytes);
}

std::unique_ptr<Subgraph> create_norm(const ProgramDesc& desc, std::size_t first, std::size_t count) {
  const PlannedNorm run = match(desc, first, count);
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
