// The problem of the convolution ladders. Who adds variants writes a function of the form of fp32_convolution_variants and
// appends its variants in convolution.cu.
#pragma once

#include <cstdint>
#include <vector>

#include "common/convolution.hpp"
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
};

using ConvolutionVariant = Variant<ConvolutionProblem>;

// What a variant may take of workspace; one that needs more refuses, in these words.
inline constexpr uint64_t kMostConvolutionWorkspace = uint64_t{1} << 30;
inline constexpr const char* kTooMuchWorkspace = "the workspace would be larger than 1 GiB";

// CONV2D_BIAS_ACTIVATION on the current GPU. Throws Refusal.
ConvolutionProblem bias_activation_problem(const OpDesc& desc);

// Of ordinary cores, in fp32: im2col, implicit GEMM, and Winograd with tiles of 2x2 and of 4x4.
std::vector<ConvolutionVariant> fp32_convolution_variants();

// For few channels, at stride and dilation 1.
std::vector<ConvolutionVariant> direct_convolution_variants();

// Of Hopper's tensor cores, in TF32: all of them, and those for few tiles.
std::vector<ConvolutionVariant> tensor_convolution_variants();
std::vector<ConvolutionVariant> small_convolution_variants();

}  // namespace gpunn::cuda_tiled
