#include "subgraphs/fused_norm.hpp"

#include <gpunn/float_formats.hpp>

#include <cstdint>

#include "common/subgraphs/batch_norm.hpp"
#include "norms/batch_norm.hpp"

namespace gpunn::cpu {
namespace {

using backends::NormSubgraph;
using plugin::ProgramDesc;
using plugin::SubgraphArgs;

// A match and how its batch norm is computed.
struct PlannedNorm : NormSubgraph {
  BatchNormPlan plan;
};

PlannedNorm planned_norm(const ProgramDesc& desc, std::size_t first, std::size_t limit, int threads) {
  PlannedNorm run{backends::match_norm(desc, first, limit), {}};
  if (run.ops > 0) run.plan = plan_batch_norm(run.shape, run.dtype, true, threads);
  return run;
}

// nullptr where there is no such value.
template <class T>
T* data_of(const SubgraphArgs& args, int32_t id) {
  return id < 0 ? nullptr : args.data<T>(id);
}

template <class T>
void run_norm_subgraph(const PlannedNorm& run, const SubgraphArgs& args) {
  const auto in = [&](std::size_t i) { return args.data<float>(run.inputs[i]); };
  const auto out = [&](std::size_t i) { return args.data<float>(run.outputs[i]); };
  const int32_t* count = run.shape.counted ? args.data<int32_t>(run.inputs[5]) : nullptr;
  if (run.backward) {
    run_batch_norm_backward(run.plan, BatchNormBackward<T>{.dy = args.data<T>(run.dy),
                                                           .more_dy = data_of<T>(args, run.other),
                                                           .relu_y = args.data<T>(run.y),
                                                           .masked = data_of<T>(args, run.masked),
                                                           .x = args.data<T>(run.inputs[1]),
                                                           .gamma = in(2),
                                                           .mean = in(3),
                                                           .rstd = in(4),
                                                           .count = count,
                                                           .dx = args.data<T>(run.outputs[0]),
                                                           .dgamma = out(1),
                                                           .dbeta = out(2),
                                                           .workspace = args.workspace<void>()});
  } else {
    run_batch_norm(run.plan, BatchNormForward<T>{.x = args.data<T>(run.inputs[0]),
                                                 .gamma = in(1),
                                                 .beta = in(2),
                                                 .count = count,
                                                 .other = data_of<T>(args, run.other),
                                                 .relu = true,
                                                 .y = args.data<T>(run.y),
                                                 .mean = out(1),
                                                 .rstd = out(2),
                                                 .running_mean = out(3),
                                                 .running_var = out(4),
                                                 .workspace = args.workspace<void>()});
  }
}

}  // namespace

plugin::SubgraphSupport query_norm(const ProgramDesc& desc, std::size_t first, std::size_t limit, int threads) {
  const PlannedNorm run = planned_norm(desc, first, limit, threads);
  if (run.ops == 0) return plugin::SubgraphSupport::no();
  return plugin::SubgraphSupport::yes(run.ops, run.backward ? "fused batch norm backward" : "fused batch norm",
                                      run.plan.workspace_bytes);
}

std::unique_ptr<plugin::Subgraph> create_norm(const ProgramDesc& desc, std::size_t first, std::size_t count,
                                              int threads) {
  const PlannedNorm run = planned_norm(desc, first, count, threads);
  if (run.ops != count) throw plugin::Failure(GPUNN_INVALID_ARGUMENT, "not a batch norm that was fused");
  return plugin::make_subgraph([run](plugin::Stream&, const SubgraphArgs& args) {
    switch (run.dtype) {
      case GPUNN_BF16:
        return run_norm_subgraph<BFloat16>(run, args);
      case GPUNN_F16:
        return run_norm_subgraph<Half>(run, args);
      default:
        return run_norm_subgraph<float>(run, args);
    }
  });
}

}  // namespace gpunn::cpu
