// CONV2D, its gradients and CONV2D_BIAS_ACTIVATION: the ladder of their kernel variants. If results must not depend on
// timing, the first variant that serves the shape is taken.
#include <algorithm>

#include "architecture.hpp"
#include "conv/convolution.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_tiled {
namespace {

ConvolutionProblem problem_of(const OpDesc& desc, ConvolutionPass pass, const ConvolutionShape& shape) {
  return {.pass = pass,
          .shape = shape,
          .bias = false,
          .relu = false,
          .precision = desc.precision(),
          .capability = compute_capability(),
          .multiprocessors = std::max(multiprocessors(), 1),
          .terms = terms_of(pass, shape)};
}

ConvolutionProblem forward_problem(const OpDesc& desc) {
  return problem_of(desc, ConvolutionPass::forward, convolution_of(desc));
}

ConvolutionProblem backward_data_problem(const OpDesc& desc) {
  return problem_of(desc, ConvolutionPass::backward_data, convolution_backward_data_of(desc));
}

ConvolutionProblem backward_filter_problem(const OpDesc& desc) {
  return problem_of(desc, ConvolutionPass::backward_filter, convolution_backward_filter_of(desc));
}

std::string key_of(const ConvolutionProblem& problem) {
  return text_of(problem.pass, {.bias = problem.bias, .relu = problem.relu}) + " " + text_of(problem.shape) + " " +
         precision_name(problem.precision);
}

// Those of tensor cores refuse fp32, and come first where they serve. What the direct ones take they do best.
std::vector<ConvolutionVariant> variants() {
  std::vector<ConvolutionVariant> all = tensor_convolution_variants();
  for (const ConvolutionVariant& variant : direct_convolution_variants()) all.push_back(variant);
  for (const ConvolutionVariant& variant : fp32_convolution_variants()) all.push_back(variant);
  return all;
}

}  // namespace

std::vector<ConvolutionVariant> fp32_convolution_variants() {
  std::vector<ConvolutionVariant> all = winograd_variants();
  all.push_back(implicit_gemm_variant());
  all.push_back(im2col_variant());
  return all;
}

std::vector<ConvolutionVariant> tensor_convolution_variants() {
  std::vector<ConvolutionVariant> all = wgmma_convolution_variants();
  for (const ConvolutionVariant& variant : small_convolution_variants()) all.push_back(variant);
  return all;
}

ConvolutionProblem bias_activation_problem(const OpDesc& desc) {
  const ConvolutionBiasActivation op = convolution_bias_activation_of(desc);
  ConvolutionProblem problem = problem_of(desc, ConvolutionPass::forward, op.shape);
  problem.bias = true;
  problem.relu = op.relu;
  return problem;
}

void add_convolution_kernels(TiledDevice& device) {
  add_variants(device, GPUNN_OP_CONV2D, forward_problem, key_of, variants());
  add_variants(device, GPUNN_OP_CONV2D_BIAS_ACTIVATION, bias_activation_problem, key_of, variants());
  add_variants(device, GPUNN_OP_CONV2D_BACKWARD_DATA, backward_data_problem, key_of, variants());
  add_variants(device, GPUNN_OP_CONV2D_BACKWARD_FILTER, backward_filter_problem, key_of, variants());
}

}  // namespace gpunn::cuda_tiled
