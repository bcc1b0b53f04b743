// The variants of the convolution ladders on Hopper's tensor cores: why each refuses a problem, and its launch for each
// pass. They differ in their tiles, and the autotuner chooses one for each shape.
#include <string>

#include "conv/convolution.hpp"
#include "conv/wgmma/wgmma_convolution.hpp"

namespace gpunn::cuda_tiled {
namespace {

using Problem = ConvolutionProblem;
using tensor::Direction;

Direction direction_of(const Problem& problem) {
  return problem.pass == ConvolutionPass::backward_data ? Direction::kDgrad : Direction::kFprop;
}

template <int kTile>
std::optional<tensor::WgradPlan> wgrad_plan_of(const Problem& problem) {
  if constexpr (kTile < static_cast<int>(tensor::kWgradTiles.size())) {
    return tensor::wgrad_plan(problem.shape, kTile, problem.multiprocessors);
  }
  return std::nullopt;
}

template <int kTile>
std::optional<tensor::FpropPlan> fprop_plan_of(const Problem& problem) {
  return tensor::fprop_plan(problem.shape, direction_of(problem), kTile, problem.multiprocessors);
}

template <int kTile>
uint64_t workspace_of(const Problem& problem) {
  if (problem.pass == ConvolutionPass::backward_filter) {
    return tensor::workspace_bytes(wgrad_plan_of<kTile>(problem).value());
  }
  return tensor::workspace_bytes(fprop_plan_of<kTile>(problem).value());
}

template <int kTile>
std::string refuses(const Problem& problem) {
  if (problem.precision == GPUNN_PRECISION_FP32) return "is for TF32";
  if (problem.capability != 90) return "is for GPUs of compute capability 9.0";
  const bool serves = problem.pass == ConvolutionPass::backward_filter ? wgrad_plan_of<kTile>(problem).has_value()
                                                                       : fprop_plan_of<kTile>(problem).has_value();
  if (!serves) return "its tiles are not for this shape";
  return workspace_of<kTile>(problem) > kMostConvolutionWorkspace ? kTooMuchWorkspace : "";
}

template <int kTile>
void run(const Problem& problem, cudaStream_t stream, const OpArgs& args) {
  const auto* first = args.in<float>(0);
  const auto* second = args.in<float>(1);
  auto* out = args.out<float>(0);
  auto* workspace = args.workspace<float>();
  if (problem.pass == ConvolutionPass::backward_filter) {
    if constexpr (kTile < static_cast<int>(tensor::kWgradTiles.size())) {
      tensor::run_wgrad(wgrad_plan_of<kTile>(problem).value(), kTile, first, second, out, workspace, stream);
    }
    return;
  }
  tensor::run_fprop(
      fprop_plan_of<kTile>(problem).value(), kTile,
      {.x = first, .w = second, .bias = problem.bias ? args.in<float>(2) : nullptr, .y = out, .relu = problem.relu},
      workspace, stream);
}

template <int kTile>
constexpr ConvolutionVariant variant(const char* name) {
  return {.name = name, .refuses = refuses<kTile>, .workspace_bytes = workspace_of<kTile>, .run = run<kTile>};
}

}  // namespace

std::vector<ConvolutionVariant> wgmma_convolution_variants() {
  return {variant<0>("conv:tf32:1"), variant<1>("conv:tf32:2"), variant<2>("conv:tf32:3"), variant<3>("conv:tf32:4")};
}

}  // namespace gpunn::cuda_tiled
