// The problem of a convolution or of one of its gradients, and the kernel variants that serve it. The folders:
//
//   fprop/      kernels of the forward pass. All of them also serve the data gradient, as an fprop of dy with
//               the filters turned round and their channels exchanged
//   dgrad/      kernels of the data gradient alone
//   wgrad/      kernels of the weight gradient
//   winograd/   Winograd's algorithm, for all three
//   small/      one kernel template for all three, in TF32, for few tiles
//   direct/     what the direct kernels for few channels share
//   wgmma/      what the kernels on Hopper's tensor cores share
//
// conv:1, im2col, is there to be read: ladder/conv_1_im2col.cu.
#pragma once

#include <cstdint>
#include <vector>

#include "common/convolution.hpp"
#include "epilogue.cuh"
#include "variants.hpp"

namespace gpunn::cuda_tiled {

struct ConvolutionProblem {
  ConvolutionPass pass;
  ConvolutionShape shape;
  bool bias;  // of CONV2D_BIAS_ACTIVATION, whose bias is input 2
  bool relu;
  int32_t precision;
  int capability;  // 90 of a GPU of compute capability 9.0
  int multiprocessors;
  int64_t terms;  // products of an output's sum, at most

  Epilogue epilogue(const OpArgs& args) const { return {bias ? args.in<float>(2) : nullptr, relu}; }
};

using ConvolutionVariant = Variant<ConvolutionProblem>;

// The largest workspace of a variant, in bytes. A variant that needs more refuses with this message.
inline constexpr uint64_t kMostConvolutionWorkspace = uint64_t{1} << 30;
inline constexpr const char* kTooMuchWorkspace = "the workspace would be larger than 1 GiB";

// CONV2D_BIAS_ACTIVATION on the current GPU. Throws Refusal.
ConvolutionProblem bias_activation_problem(const OpDesc& desc);

ConvolutionVariant im2col_variant();                            // conv:1
ConvolutionVariant implicit_gemm_variant();                     // conv:2
std::vector<ConvolutionVariant> winograd_variants();            // conv:3 and conv:4
std::vector<ConvolutionVariant> fp32_convolution_variants();    // these four
std::vector<ConvolutionVariant> direct_convolution_variants();  // direct:1 and direct:2, for few channels
std::vector<ConvolutionVariant> wgmma_convolution_variants();   // conv:tf32:1 to 4
std::vector<ConvolutionVariant> small_convolution_variants();   // conv:tf32:5 to 8, for few tiles
std::vector<ConvolutionVariant> tensor_convolution_variants();  // these eight

}  // namespace gpunn::cuda_tiled
