// The sliding-window kernels on the host: why they refuse a problem, their workspace, and their launches by pass.
#include "conv/depthwise/sliding.hpp"

namespace gpunn::cuda_tiled::depthwise {

using backends::ConvolutionPass;

namespace {

constexpr int64_t kMostSharedBytes = 48 * 1024;
constexpr int64_t kMostNumbered = INT32_MAX;

uint64_t parts_bytes(const DepthwiseProblem& problem, int splits) {
  if (problem.pass != ConvolutionPass::backward_filter) return 0;
  const backends::ConvolutionShape& s = problem.shape;
  return static_cast<uint64_t>(splits * s.groups * s.rows.taps * s.columns.taps) * sizeof(float);
}

}  // namespace

PackedPlan packed_plan_at(const DepthwiseProblem& problem, const void* from) {
  constexpr uintptr_t kPieceBytes = 16;
  PackedPlan plan = packed_plan(problem);
  if (reinterpret_cast<uintptr_t>(from) % kPieceBytes != 0) {
    const Sizes z = sizes_of(problem.shape);
    plan.pitch = problem.pass == ConvolutionPass::backward_data ? z.y_rows * z.y_columns : z.x_rows * z.x_columns;
  }
  return plan;
}

std::string packed_refuses(const DepthwiseProblem& problem) {
  if (problem.channels_last) return "is for packed images";
  if (std::string reason = sliding_refuses(problem); !reason.empty()) return reason;
  const backends::ConvolutionShape& s = problem.shape;
  constexpr int64_t kMostPlane = 1 << 26;
  constexpr int64_t kMostColumns = 256;  // of a weight gradient, whose threads keep their columns
  if (s.batch * s.groups > (1 << 24) || s.rows.inputs * s.columns.inputs > kMostPlane ||
      s.rows.outputs * s.columns.outputs > kMostPlane) {
    return "is for fewer or smaller images";
  }
  if (problem.pass == ConvolutionPass::backward_filter && s.columns.outputs > kMostColumns) {
    return "is for images of at most 256 columns";
  }
  const PackedPlan plan = packed_plan(problem);
  if (plan.shared_bytes > kMostSharedBytes) return "wants more shared memory than a block has";
  return plan.blocks > kMostNumbered ? "has more blocks than a grid" : "";
}

uint64_t packed_workspace_bytes(const DepthwiseProblem& problem) {
  return parts_bytes(problem, packed_plan(problem).splits);
}

void run_packed(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream) {
  switch (problem.pass) {
    case ConvolutionPass::forward:
      return forward_of_packed(problem, at, stream);
    case ConvolutionPass::backward_data:
      return data_gradient_of_packed(problem, at, stream);
    case ConvolutionPass::backward_filter:
      return weight_gradient_of_packed(problem, at, stream);
  }
}

std::string channels_last_refuses(const DepthwiseProblem& problem) {
  if (!problem.channels_last) return "is for channels-last images";
  if (std::string reason = sliding_refuses(problem); !reason.empty()) return reason;
  const backends::ConvolutionShape& s = problem.shape;
  if (s.groups % width_of(s.rows.taps) != 0) return "takes channels by fours, or by twos for filters beyond 3x3";
  if (s.batch > (1 << 24) || channels_last_plan(problem).tasks > kMostNumbered / 2) return "is for fewer pixels";
  return "";
}

uint64_t channels_last_workspace_bytes(const DepthwiseProblem& problem) {
  return parts_bytes(problem, channels_last_plan(problem).splits);
}

void run_channels_last(const DepthwiseProblem& problem, const Addresses& at, cudaStream_t stream) {
  switch (problem.pass) {
    case ConvolutionPass::forward:
      return forward_of_channels_last(problem, at, stream);
    case ConvolutionPass::backward_data:
      return data_gradient_of_channels_last(problem, at, stream);
    case ConvolutionPass::backward_filter:
      return weight_gradient_of_channels_last(problem, at, stream);
  }
}

}  // namespace gpunn::cuda_tiled::depthwise
