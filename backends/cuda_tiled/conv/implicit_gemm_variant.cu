// conv:2, implicit GEMM in fp32: why it refuses a problem, and its launch for each pass.
#include <string>

#include "conv/convolution.hpp"
#include "conv/implicit_gemm.hpp"

namespace gpunn::cuda_tiled {
namespace {

uint64_t workspace_bytes(const ConvolutionProblem& problem) {
  switch (problem.pass) {
    case ConvolutionPass::backward_data:
      return conv::implicit_gemm_dgrad_workspace_bytes(problem.shape, problem.multiprocessors);
    case ConvolutionPass::backward_filter:
      return conv::implicit_gemm_wgrad_workspace_bytes(problem.shape, problem.multiprocessors);
    case ConvolutionPass::forward:
      break;
  }
  return conv::implicit_gemm_fprop_workspace_bytes(problem.shape, problem.multiprocessors);
}

std::string refuses(const ConvolutionProblem& problem) {
  std::string reason = conv::implicit_gemm_refuses(problem.shape, problem.pass == ConvolutionPass::backward_data);
  if (!reason.empty()) return reason;
  return workspace_bytes(problem) > kMostConvolutionWorkspace ? kTooMuchWorkspace : "";
}

void run(const ConvolutionProblem& problem, cudaStream_t stream, const OpArgs& args) {
  const auto* first = args.in<float>(0);
  const auto* second = args.in<float>(1);
  auto* workspace = args.workspace<void>();
  switch (problem.pass) {
    case ConvolutionPass::forward:
      return conv::implicit_gemm_fprop(problem.shape, first, second, problem.epilogue(args), args.out<float>(0),
                                       workspace, problem.multiprocessors, stream);
    case ConvolutionPass::backward_data:
      return conv::implicit_gemm_dgrad(problem.shape, first, second, args.out<float>(0), workspace,
                                       problem.multiprocessors, stream);
    case ConvolutionPass::backward_filter:
      return conv::implicit_gemm_wgrad(problem.shape, first, second, args.out<float>(0), workspace,
                                       problem.multiprocessors, stream);
  }
}

}  // namespace

ConvolutionVariant implicit_gemm_variant() {
  return {.name = "conv:2", .refuses = refuses, .workspace_bytes = workspace_bytes, .run = run};
}

}  // namespace gpunn::cuda_tiled
