#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/subgraphs/batch_norm.hpp"
#include "conv/half/half_convolution.hpp"
#include "conv/stem/stem.hpp"
#include "counters.hpp"
#include "cuda_common/stream.hpp"
#include "cuda_common/workspace.hpp"
#include "device.hpp"
#include "normalization/normalization_resident.hpp"
#include "normalization/slabs.hpp"
#include "subgraphs/batch_norm.hpp"
#include "subgraphs/convolution_apart.hpp"
#include "subgraphs/convolution_sums.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;
using backends::NormSubgraph;
using backends::Refusal;

// A match with what its kernels need.
struct NormPlan {
  NormSubgraph run;
  BatchNormPlan norm;
  uint64_t workspace_bytes = 0;
  uint64_t signs_at = 0;                       // in the workspace, where the backward keeps them
  std::optional<HalfConvolution> convolution;  // in front
  uint64_t convolution_bytes = 0;              // of the workspace, at its beginning
};

// Whether the backward keeps a bit of each number of the ReLU's output, to read that once instead of twice.
bool keeps_signs(const NormSubgraph& run) {
  const backends::BatchNorm& shape = run.shape;
  return run.backward && run.masked < 0 && ops::is_half(run.dtype) && shape.channels_last && shape.channels % 8 == 0;
}

// Nothing where no subgraph begins with this op.
std::optional<NormPlan> plan_norm(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  NormPlan plan;
  plan.run = backends::match_norm(desc, first, limit);
  if (plan.run.ops == 0) return std::nullopt;
  try {
    plan.norm = batch_norm_plan(plan.run.shape);
  } catch (const Refusal&) {
    return std::nullopt;
  }
  plan.workspace_bytes = plan.norm.workspace_bytes;
  if (keeps_signs(plan.run)) {
    plan.signs_at = cuda::workspace_aligned(plan.workspace_bytes);
    plan.workspace_bytes = plan.signs_at + static_cast<uint64_t>(plan.run.shape.elements()) / 8;
  }
  return plan;
}

// What the convolution's kernel leaves behind it.
SlabPlan slabs_of(const NormPlan& plan, int kernel) {
  const HalfSlabs slabs = half_slabs(*plan.convolution, kernel);
  return slab_plan(plan.run.shape, slabs.count, slabs.rows);
}

ConvolutionSubgraph subgraph_of(const NormPlan& plan, std::size_t first) {
  return {.first = first,
          .count = plan.run.ops,
          .convolution = *plan.convolution,
          .norm_bytes = plan.norm.workspace_bytes,
          .workspace_bytes = plan.workspace_bytes};
}

// The same of those that begin with a convolution of channels-last images in half precision.
std::optional<NormPlan> plan_convolution(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  NormPlan plan;
  plan.run = backends::match_convolution_norm(desc, first, limit);
  const NormSubgraph& run = plan.run;
  if (run.ops == 0 || !run.shape.channels_last || !ops::is_half(run.dtype)) return std::nullopt;
  if (convolution_sums() == ConvolutionSums::none) return std::nullopt;
  try {
    plan.norm = batch_norm_plan(run.shape);
    plan.convolution = half_forward_problem(desc.op(first));
    plan.convolution->statistics = true;
  } catch (const Refusal&) {
    return std::nullopt;
  }
  if (is_stem(*plan.convolution)) return std::nullopt;  // kernels of its own, without statistics, are faster
  const std::vector<int> kernels = half_kernels(*plan.convolution);
  if (kernels.empty()) return std::nullopt;
  plan.convolution_bytes = cuda::workspace_aligned(half_kernels_workspace(*plan.convolution, kernels));
  uint64_t slab_bytes = 0;
  for (const int kernel : kernels) slab_bytes = std::max(slab_bytes, slabs_of(plan, kernel).workspace_bytes());
  plan.workspace_bytes = std::max(plan.convolution_bytes + slab_bytes, apart_workspace(desc, subgraph_of(plan, first)));
  return plan;
}

// Batch norm need not read its images for the statistics. For the comparison with a convolution that another plugin
// runs faster.
double saved_seconds(const backends::BatchNorm& shape) {
  return seconds_behind_convolution(static_cast<double>(shape.elements()) * sizeof(uint16_t));
}

template <class T>
Forward<T> forward_of(const NormPlan& plan, const SubgraphArgs& args) {
  const NormSubgraph& run = plan.run;
  const auto in = [&](std::size_t i) { return args.data<float>(run.inputs[i]); };
  const auto out = [&](std::size_t i) { return args.data<float>(run.outputs[i]); };
  return {.x = args.data<T>(run.inputs[0]),
          .gamma = in(1),
          .beta = in(2),
          .count = run.shape.counted ? args.data<int32_t>(run.inputs[5]) : nullptr,
          .parts = args.workspace<float2>(),
          .residual = run.other < 0 ? nullptr : args.data<T>(run.other),
          .relu = run.relu,
          .y = args.data<T>(run.y),
          .mean = out(1),
          .rstd = out(2),
          .running_mean = out(3),
          .running_var = out(4),
          .epsilon = run.shape.epsilon,
          .momentum = run.shape.momentum};
}

template <class T>
void run_backward(const NormPlan& plan, cudaStream_t stream, const SubgraphArgs& args) {
  const NormSubgraph& run = plan.run;
  const auto in = [&](std::size_t i) { return args.data<float>(run.inputs[i]); };
  const auto out = [&](std::size_t i) { return args.data<float>(run.outputs[i]); };
  const Backward<T> b{.dy = args.data<T>(run.dy),
                      .more_dy = run.other < 0 ? nullptr : args.data<T>(run.other),
                      .relu_y = args.data<T>(run.y),
                      .masked = run.masked < 0 ? nullptr : args.data<T>(run.masked),
                      .signs = keeps_signs(run) ? args.workspace<uint8_t>() + plan.signs_at : nullptr,
                      .x = args.data<T>(run.inputs[1]),
                      .gamma = in(2),
                      .mean = in(3),
                      .rstd = in(4),
                      .count = run.shape.counted ? args.data<int32_t>(run.inputs[5]) : nullptr,
                      .parts = args.workspace<float2>(),
                      .dx = args.data<T>(run.outputs[0]),
                      .dgamma = out(1),
                      .dbeta = out(2)};
  run_batch_norm_backward(plan.norm, b, stream);
}

template <class T>
void run_norm(const NormPlan& plan, cudaStream_t stream, const SubgraphArgs& args) {
  if (plan.run.backward) return run_backward<T>(plan, stream, args);
  run_batch_norm(plan.norm, forward_of<T>(plan, args), args.workspace<float2>(), stream);
}

// By the dtype of what is normalised: run(a number of it).
template <class Run>
void by_dtype(int32_t dtype, const Run& run) {
  switch (dtype) {
    case GPUNN_BF16:
      return run(__nv_bfloat16());
    case GPUNN_F16:
      return run(__half());
    default:
      return run(float());
  }
}

// The ids of the convolution's tensors.
struct ConvolutionIds {
  int32_t x, w, y;
};

// A convolution with the batch norm behind it.
class ConvolutionNorm final : public Subgraph {
 public:
  ConvolutionNorm(NormPlan plan, const ConvolutionIds& ids, int kernel)
      : plan_(std::move(plan)),
        ids_(ids),
        kernel_(kernel),
        slabs_(slabs_of(plan_, kernel)),
        counters_(slabs_.counters()) {}

  void enqueue(Stream& stream, const SubgraphArgs& args) override {
    const cudaStream_t native = cuda::native(stream);
    auto* const room = args.workspace<uint8_t>();
    auto* const slabs = reinterpret_cast<float2*>(room + plan_.convolution_bytes);
    const backends::BatchNorm& shape = plan_.run.shape;
    const int32_t* const images = shape.counted ? args.data<int32_t>(plan_.run.inputs[5]) : nullptr;
    run_half_kernel(*plan_.convolution, kernel_,
                    {.inputs = {args.data<void>(ids_.x), args.data<void>(ids_.w)},
                     .output = args.data<void>(ids_.y),
                     .workspace = room,
                     .statistics = {.slabs = slabs, .images = images, .pixels = static_cast<int>(shape.size)}},
                    native);
    by_dtype(plan_.run.dtype, [&](auto number) {
      using T = decltype(number);
      if constexpr (!std::is_same_v<T, float>) {
        run_batch_norm_of_slabs(shape, slabs_, forward_of<T>(plan_, args), slabs, counters_.data(), native);
      }
    });
  }

 private:
  NormPlan plan_;
  ConvolutionIds ids_;
  int kernel_;
  SlabPlan slabs_;
  Counters counters_;
};

}  // namespace

SubgraphSupport query_norm(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  if (const std::optional<NormPlan> plan = plan_convolution(desc, first, limit)) {
    SubgraphSupport support =
        SubgraphSupport::yes(plan->run.ops, "fused convolution and batch norm", plan->workspace_bytes);
    support.saved_seconds = saved_seconds(plan->run.shape);
    return support;
  }
  const std::optional<NormPlan> plan = plan_norm(desc, first, limit);
  if (!plan) return SubgraphSupport::no();
  return SubgraphSupport::yes(plan->run.ops, plan->run.backward ? "fused batch norm backward" : "fused batch norm",
                              plan->workspace_bytes);
}

std::unique_ptr<Subgraph> create_norm(TiledDevice& device, const ProgramDesc& desc, std::size_t first,
                                      std::size_t count) {
  std::optional<NormPlan> plan = plan_convolution(desc, first, count);
  if (!plan) plan = plan_norm(desc, first, count);
  if (!plan || plan->run.ops != count) throw Failure(GPUNN_INVALID_ARGUMENT, "not a batch norm that was fused");
  const auto norm = [&]() -> std::unique_ptr<Subgraph> {
    return make_subgraph([plan = *plan](Stream& stream, const SubgraphArgs& args) {
      by_dtype(plan.run.dtype, [&](auto number) { run_norm<decltype(number)>(plan, cuda::native(stream), args); });
    });
  };
  if (!plan->convolution) return norm();
  const ConvolutionIds ids{desc.inputs(first)[0], desc.inputs(first)[1], desc.outputs(first)[0]};
  return choose_way(
      device, desc, subgraph_of(*plan, first),
      [&](int kernel) { return std::make_unique<ConvolutionNorm>(*plan, ids, kernel); }, norm);
}

}  // namespace gpunn::cuda_tiled
