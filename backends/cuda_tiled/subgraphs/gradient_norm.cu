#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/subgraphs/batch_norm.hpp"
#include "conv/half/half_convolution.hpp"
#include "counters.hpp"
#include "cuda_common/stream.hpp"
#include "cuda_common/workspace.hpp"
#include "normalization/slabs.hpp"
#include "subgraphs/batch_norm.hpp"
#include "subgraphs/convolution_apart.hpp"
#include "subgraphs/convolution_sums.hpp"
#include "subgraphs/gradient_norm.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;
using backends::NormSubgraph;
using backends::Refusal;

// Of a tensor. Smaller ones are in the L2 cache, where reading them once more costs little, and few tiles, of which
// none is split, would not fill the GPU.
constexpr int64_t kLeastElements = int64_t{1} << 23;

// A match with what its kernels need. In the workspace: what the convolution needs, the masked gradient where no other
// op needs it, and the slabs.
struct GradientPlan {
  NormSubgraph run;
  HalfConvolution convolution;
  uint64_t norm_bytes = 0;  // of the batch norm by itself
  uint64_t masked_at = 0;
  uint64_t slabs_at = 0;
  uint64_t workspace_bytes = 0;
};

// What the data gradient's kernel leaves behind it.
SlabPlan slabs_of(const GradientPlan& plan, int kernel) {
  return slab_plan(plan.run.shape, half_slabs(plan.convolution, kernel).count);
}

ConvolutionSubgraph subgraph_of(const GradientPlan& plan, std::size_t first) {
  return {.first = first,
          .count = plan.run.ops,
          .convolution = plan.convolution,
          .norm_bytes = plan.norm_bytes,
          .workspace_bytes = plan.workspace_bytes};
}

// Nothing where no subgraph begins with this op.
std::optional<GradientPlan> plan_gradient(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  GradientPlan plan;
  plan.run = backends::match_gradient_norm(desc, first, limit);
  const NormSubgraph& run = plan.run;
  const backends::BatchNorm& shape = run.shape;
  if (run.ops == 0 || !shape.channels_last || !ops::is_half(run.dtype) || convolution_sums() != ConvolutionSums::all)
    return std::nullopt;
  if (shape.channels % 8 != 0 || shape.elements() < kLeastElements) return std::nullopt;
  if (run.other >= 0 && !is_channels_last(desc.tensor(run.other))) return std::nullopt;
  try {
    plan.convolution = half_backward_data_problem(desc.op(first));
  } catch (const Refusal&) {
    return std::nullopt;
  }
  plan.convolution.gradient = true;
  const std::vector<int> kernels = half_kernels(plan.convolution);
  if (kernels.empty()) return std::nullopt;
  const SubgraphSupport norm = query_norm(desc, first + 1, run.ops - 1);
  if (norm.ops != run.ops - 1) return std::nullopt;
  plan.norm_bytes = norm.workspace_bytes;
  plan.masked_at = cuda::workspace_aligned(half_kernels_workspace(plan.convolution, kernels));
  uint64_t slab_bytes = 0;
  for (const int kernel : kernels) slab_bytes = std::max(slab_bytes, slabs_of(plan, kernel).workspace_bytes());
  plan.slabs_at = plan.masked_at;
  if (run.masked < 0) {
    plan.slabs_at += cuda::workspace_aligned(static_cast<uint64_t>(shape.elements()) * sizeof(uint16_t));
  }
  plan.workspace_bytes = std::max(plan.slabs_at + slab_bytes, apart_workspace(desc, subgraph_of(plan, first)));
  return plan;
}

// The gradient is read once less, and with a second gradient also written once less.
double saved_seconds(const NormSubgraph& run) {
  return seconds_behind_convolution(static_cast<double>(run.shape.elements()) * sizeof(uint16_t) *
                                    (run.other < 0 ? 1 : 2));
}

// The ids of the convolution's inputs.
struct ConvolutionIds {
  int32_t dy, w;
};

class GradientNorm final : public Subgraph {
 public:
  GradientNorm(GradientPlan plan, const ConvolutionIds& ids, int kernel)
      : plan_(std::move(plan)),
        ids_(ids),
        kernel_(kernel),
        slabs_(slabs_of(plan_, kernel)),
        counters_(slabs_.counters()) {}

  void enqueue(Stream& stream, const SubgraphArgs& args) override {
    if (plan_.run.dtype == GPUNN_BF16)
      run<__nv_bfloat16>(cuda::native(stream), args);
    else
      run<__half>(cuda::native(stream), args);
  }

 private:
  template <class T>
  void run(cudaStream_t stream, const SubgraphArgs& args) {
    const NormSubgraph& run = plan_.run;
    const auto in = [&](std::size_t i) { return args.data<float>(run.inputs[i]); };
    const auto out = [&](std::size_t i) { return args.data<float>(run.outputs[i]); };
    auto* const room = args.workspace<uint8_t>();
    auto* const slabs = reinterpret_cast<float2*>(room + plan_.slabs_at);
    const int32_t* const images = run.shape.counted ? args.data<int32_t>(run.inputs[5]) : nullptr;
    T* const masked = run.masked < 0 ? reinterpret_cast<T*>(room + plan_.masked_at) : args.data<T>(run.masked);
    run_half_kernel(plan_.convolution, kernel_,
                    {.inputs = {args.data<void>(ids_.dy), args.data<void>(ids_.w)},
                     .output = masked,
                     .workspace = room,
                     .gradient = {.more = run.other < 0 ? nullptr : args.data<void>(run.other),
                                  .relu_y = args.data<void>(run.y),
                                  .x = args.data<void>(run.inputs[1]),
                                  .mean = in(3),
                                  .slabs = slabs,
                                  .images = images}},
                    stream);
    const Backward<T> b{.dy = nullptr,
                        .more_dy = nullptr,
                        .relu_y = nullptr,
                        .masked = masked,
                        .signs = nullptr,
                        .x = args.data<T>(run.inputs[1]),
                        .gamma = in(2),
                        .mean = in(3),
                        .rstd = in(4),
                        .count = images,
                        .parts = nullptr,
                        .dx = args.data<T>(run.outputs[0]),
                        .dgamma = out(1),
                        .dbeta = out(2)};
    run_batch_norm_backward_of_slabs(run.shape, slabs_, b, slabs, counters_.data(), stream);
  }

  GradientPlan plan_;
  ConvolutionIds ids_;
  int kernel_;
  SlabPlan slabs_;
  Counters counters_;
};

}  // namespace

SubgraphSupport query_gradient_norm(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  const std::optional<GradientPlan> plan = plan_gradient(desc, first, limit);
  if (!plan) return SubgraphSupport::no();
  SubgraphSupport support =
      SubgraphSupport::yes(plan->run.ops, "fused data gradient and batch norm backward", plan->workspace_bytes);
  support.saved_seconds = saved_seconds(plan->run);
  return support;
}

std::unique_ptr<Subgraph> create_gradient_norm(TiledDevice& device, const ProgramDesc& desc, std::size_t first,
                                               std::size_t count) {
  std::optional<GradientPlan> plan = plan_gradient(desc, first, count);
  if (!plan || plan->run.ops != count) throw Failure(GPUNN_INVALID_ARGUMENT, "not a data gradient that was fused");
  const ConvolutionIds ids{desc.inputs(first)[0], desc.inputs(first)[1]};
  return choose_way(
      device, desc, subgraph_of(*plan, first),
      [&](int kernel) { return std::make_unique<GradientNorm>(*plan, ids, kernel); },
      [&] { return create_norm(device, desc, first + 1, count - 1); });
}

}  // namespace gpunn::cuda_tiled
