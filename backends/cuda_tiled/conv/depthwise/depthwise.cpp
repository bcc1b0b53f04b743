// The variants of depthwise convolutions, and the family's registration.
#include "conv/depthwise/depthwise.hpp"

#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <initializer_list>

#include "architecture.hpp"
#include "conv/depthwise/depthwise_plan.hpp"
#include "cuda_common/alignment.hpp"
#include "kernels.hpp"
#include "variants.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::ConvolutionPass;
using backends::ConvolutionShape;
using depthwise::Addresses;

DepthwiseProblem depthwise_problem_of(const OpDesc& desc, ConvolutionPass pass, const ConvolutionShape& shape) {
  backends::require(shape.group_inputs == 1 && shape.groups > 1, "a group has several channels, or there is but one");
  return {.pass = pass,
          .shape = shape,
          .dtype = desc.input(0).dtype,
          .channels_last = plugin::has_channels_last(desc),
          .multiprocessors = std::max(multiprocessors(), 1),
          .terms = terms_of(pass, shape)};
}

DepthwiseProblem forward_problem(const OpDesc& desc) {
  return depthwise_problem_of(desc, ConvolutionPass::forward, backends::convolution_of(desc));
}

DepthwiseProblem bias_activation_problem(const OpDesc& desc) {
  const backends::ConvolutionBiasActivation op = backends::convolution_bias_activation_of(desc);
  DepthwiseProblem problem = depthwise_problem_of(desc, ConvolutionPass::forward, op.shape);
  problem.bias = true;
  problem.relu = op.relu;
  return problem;
}

DepthwiseProblem data_gradient_problem(const OpDesc& desc) {
  return depthwise_problem_of(desc, ConvolutionPass::backward_data, backends::convolution_backward_data_of(desc));
}

DepthwiseProblem weight_gradient_problem(const OpDesc& desc) {
  return depthwise_problem_of(desc, ConvolutionPass::backward_filter, backends::convolution_backward_filter_of(desc));
}

std::string key_of(const DepthwiseProblem& problem) {
  std::string key = "depthwise";
  if (problem.pass == ConvolutionPass::backward_data) key += "_backward_data";
  if (problem.pass == ConvolutionPass::backward_filter) key += "_backward_filter";
  if (problem.bias) key += problem.relu ? "_bias_relu" : "_bias";
  return key + " " + text_of(problem.shape) + " " + ops::dtype_text(problem.dtype) +
         (problem.channels_last ? " channels-last" : "");
}

Addresses addresses_of(const DepthwiseProblem& problem, const OpArgs& args) {
  Addresses at{.out = args.out<void>(0), .workspace = args.workspace<float>()};
  switch (problem.pass) {
    case ConvolutionPass::forward:
      at.x = args.in<void>(0);
      at.w = args.in<void>(1);
      at.epilogue = {problem.bias ? args.in<float>(2) : nullptr, problem.relu};
      break;
    case ConvolutionPass::backward_data:
      at.y = args.in<void>(0);
      at.w = args.in<void>(1);
      break;
    case ConvolutionPass::backward_filter:
      at.y = args.in<void>(0);
      at.x = args.in<void>(1);
      break;
  }
  return at;
}

// Whether threads may read and write what they have of a pixel in one access.
bool all_aligned(const Addresses& at) {
  constexpr std::size_t kWidest = 16;
  return cuda::are_aligned({at.x, at.w, at.y, at.out}, kWidest);
}

void run_general(const DepthwiseProblem& problem, cudaStream_t stream, const OpArgs& args) {
  depthwise::run_general(problem, addresses_of(problem, args), stream);
}

std::string sliding_refuses(const DepthwiseProblem& problem) {
  return problem.channels_last ? depthwise::channels_last_refuses(problem) : depthwise::packed_refuses(problem);
}

// That of the general kernel too, for tensors that are not aligned.
uint64_t sliding_workspace_bytes(const DepthwiseProblem& problem) {
  return problem.channels_last
             ? std::max(depthwise::channels_last_workspace_bytes(problem), depthwise::general_workspace_bytes(problem))
             : depthwise::packed_workspace_bytes(problem);
}

void run_sliding(const DepthwiseProblem& problem, cudaStream_t stream, const OpArgs& args) {
  const Addresses at = addresses_of(problem, args);
  if (!problem.channels_last) return depthwise::run_packed(problem, at, stream);
  if (!all_aligned(at)) return depthwise::run_general(problem, at, stream);
  depthwise::run_channels_last(problem, at, stream);
}

std::vector<Variant<DepthwiseProblem>> depthwise_variants() {
  return {{.name = "conv:depthwise:sliding",
           .refuses = sliding_refuses,
           .workspace_bytes = sliding_workspace_bytes,
           .run = run_sliding},
          {.name = "conv:depthwise:general",
           .refuses = depthwise::general_refuses,
           .workspace_bytes = depthwise::general_workspace_bytes,
           .run = run_general}};
}

}  // namespace

// Registered before the other convolutions, from which it thus takes what it serves.
void add_depthwise_kernels(TiledDevice& device) {
  const auto add = [&](int32_t op, DepthwiseProblem (*problem)(const OpDesc&)) {
    add_variants(device, op, problem, key_of, depthwise_variants(), Dtypes::floating, Layouts::channels_last_too);
  };
  add(GPUNN_OP_CONV2D, forward_problem);
  add(GPUNN_OP_CONV2D_BIAS_ACTIVATION, bias_activation_problem);
  add(GPUNN_OP_CONV2D_BACKWARD_DATA, data_gradient_problem);
  add(GPUNN_OP_CONV2D_BACKWARD_FILTER, weight_gradient_problem);
}

}  // namespace gpunn::cuda_tiled
