// The variants of the direct convolutions for few channels: why each refuses a problem, and its launch for each pass.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "conv/convolution.hpp"
#include "conv/direct/direct_convolution.hpp"
#include "conv/direct/direct_pooling.hpp"

namespace gpunn::cuda_tiled {
namespace {

using Problem = ConvolutionProblem;

constexpr uint64_t kMostWorkspace = uint64_t{1} << 30;

// Shared memory that a block may have.
uint64_t shared_bytes_of(int capability) {
  constexpr uint64_t kKiB = 1024;
  if (capability >= 120) return 99 * kKiB;
  if (capability >= 90) return 227 * kKiB;
  if (capability == 80 || capability == 87) return 163 * kKiB;
  return capability > 80 ? 99 * kKiB : 64 * kKiB;
}

std::string refusal(const Problem& problem) {
  const ConvolutionShape& s = problem.shape;
  constexpr int64_t kFew = 16;
  constexpr int64_t kMost = 64;
  if (std::min(s.group_inputs, s.group_outputs) > kFew || std::max(s.group_inputs, s.group_outputs) > kMost) {
    return "is for few channels";
  }
  for (const ConvolutionAxis* axis : {&s.rows, &s.columns}) {
    if (axis->stride != 1 || axis->dilation != 1) return "is for a stride and dilation of 1";
    if (axis->taps > 31 || axis->pad >= axis->taps) return "is for small filters, and padding smaller than they";
    if (axis->inputs > 4096) return "is for smaller images";
  }
  if (s.groups > 1024 || s.batch > (1 << 20) || s.batch * s.groups > (1 << 22)) return "is for fewer images";
  return "";
}

std::string fits(bool planned, uint64_t shared_bytes, const Problem& problem) {
  if (!planned) return "has no tile for these filters, or shared memory holds no image";
  return shared_bytes > shared_bytes_of(problem.capability) ? "wants more shared memory than this GPU's blocks have"
                                                            : "";
}

// Plans take longer to make than a launch, and are asked for at each: what was made is kept, of the last shapes.
template <class Plan, class Make>
Plan kept(const Problem& problem, const Make& make) {
  using Key = std::array<int64_t, 17>;
  constexpr std::size_t kMostKept = 256;
  thread_local std::map<Key, Plan> plans;
  const ConvolutionShape& s = problem.shape;
  const Key key{static_cast<int64_t>(problem.pass),
                s.batch,
                s.groups,
                s.group_inputs,
                s.group_outputs,
                s.rows.inputs,
                s.rows.outputs,
                s.rows.taps,
                s.rows.stride,
                s.rows.pad,
                s.rows.dilation,
                s.columns.inputs,
                s.columns.outputs,
                s.columns.taps,
                s.columns.stride,
                s.columns.pad,
                s.columns.dilation};
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  if (plans.size() >= kMostKept) plans.clear();
  return plans.emplace(key, make()).first->second;
}

// How many blocks may begin before the kernel before them has ended; of GPUs whose multiprocessors then have the shared
// memory for it.
int early_blocks(const Problem& problem) {
  return problem.capability >= 90 && problem.capability < 120 ? problem.multiprocessors : 0;
}

direct::FpropPlan fprop_plan(const Problem& problem) {
  return kept<direct::FpropPlan>(
      problem, [&] { return direct::fprop_of(problem.shape, problem.pass == ConvolutionPass::backward_data); });
}

direct::DgradPlan dgrad_plan(const Problem& problem) {
  return kept<direct::DgradPlan>(problem, [&] { return direct::dgrad_of(problem.shape); });
}

direct::WgradPlan wgrad_plan(const Problem& problem) {
  return kept<direct::WgradPlan>(problem, [&] { return direct::wgrad_of(problem.shape); });
}

std::string first_refuses(const Problem& problem) {
  std::string reason = refusal(problem);
  if (!reason.empty()) return reason;
  if (problem.pass == ConvolutionPass::backward_filter) {
    try {
      const DirectWgrad plan = direct_wgrad_of(problem.shape);
      return fits(true, plan.shared_bytes, problem);
    } catch (const Refusal& refused) {
      return refused.what();
    }
  }
  const direct::FpropPlan plan = fprop_plan(problem);
  return fits(plan.data != nullptr, direct::shared_bytes(plan), problem);
}

uint64_t first_workspace(const Problem& problem) {
  return problem.pass == ConvolutionPass::backward_filter ? direct_wgrad_of(problem.shape).workspace_bytes() : 0;
}

void run_first(const Problem& problem, cudaStream_t stream, const OpArgs& args) {
  if (problem.pass == ConvolutionPass::backward_filter) {
    return run_direct_wgrad(direct_wgrad_of(problem.shape), args.in<float>(0), args.in<float>(1), args.out<float>(0),
                            args.workspace<float>(), stream);
  }
  direct::run_fprop(fprop_plan(problem), args.in<float>(0), args.in<float>(1),
                    problem.bias ? args.in<float>(2) : nullptr, problem.relu, args.out<float>(0), early_blocks(problem),
                    stream);
}

std::string second_refuses(const Problem& problem) {
  std::string reason = refusal(problem);
  if (!reason.empty()) return reason;
  switch (problem.pass) {
    case ConvolutionPass::backward_data: {
      const direct::DgradPlan plan = dgrad_plan(problem);
      return fits(plan.data != nullptr, direct::shared_bytes(plan), problem);
    }
    case ConvolutionPass::backward_filter: {
      const direct::WgradPlan plan = wgrad_plan(problem);
      if (plan.data != nullptr && direct::workspace_bytes(plan) > kMostWorkspace) return "wants too large a workspace";
      return fits(plan.data != nullptr, direct::shared_bytes(plan), problem);
    }
    case ConvolutionPass::forward:
      break;
  }
  return "is for gradients";
}

uint64_t second_workspace(const Problem& problem) {
  return problem.pass == ConvolutionPass::backward_filter ? direct::workspace_bytes(wgrad_plan(problem)) : 0;
}

void run_second(const Problem& problem, cudaStream_t stream, const OpArgs& args) {
  if (problem.pass == ConvolutionPass::backward_filter) {
    return direct::run_wgrad(wgrad_plan(problem), args.in<float>(0), args.in<float>(1), args.out<float>(0),
                             args.workspace<float>(), early_blocks(problem), stream);
  }
  direct::run_dgrad(dgrad_plan(problem), args.in<float>(0), args.in<float>(1), args.out<float>(0),
                    early_blocks(problem), stream);
}

}  // namespace

DirectPooling direct_pooling_of(const ConvolutionProblem& problem, const backends::Pool& pool) {
  const std::string reason = refusal(problem);
  backends::require(reason.empty(), reason.c_str());
  const DirectPooling found{.plan = direct::fprop_pooling_of(problem.shape, pool),
                            .relu = problem.relu,
                            .early_blocks = early_blocks(problem)};
  const std::string misfit = fits(found.plan.data != nullptr, direct::shared_bytes(found.plan), problem);
  backends::require(misfit.empty(), misfit.c_str());
  return found;
}

void run_direct_pooling(const DirectPooling& with, const float* x, const float* w, const float* bias, float* y,
                        float* pooled, cudaStream_t stream) {
  direct::run_fprop(with.plan, x, w, bias, with.relu, y, with.early_blocks, stream, pooled);
}

std::vector<ConvolutionVariant> direct_convolution_variants() {
  return {
      {.name = "direct:2", .refuses = second_refuses, .workspace_bytes = second_workspace, .run = run_second},
      {.name = "direct:1", .refuses = first_refuses, .workspace_bytes = first_workspace, .run = run_first},
  };
}

}  // namespace gpunn::cuda_tiled
