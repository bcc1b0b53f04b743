// The problem of the convolution ladders. Who adds rungs writes a function of the form of fp32_convolution_rungs and
// appends its rungs in convolution.cu.
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

using ConvolutionRung = Rung<ConvolutionProblem>;

// What a rung may take of workspace; one that needs more refuses, in these words.
inline constexpr uint64_t kMostConvolutionWorkspace = uint64_t{1} << 30;
inline constexpr const char* kTooMuchWorkspace = "the workspace would be larger than 1 GiB";

// CONV2D_BIAS_ACTIVATION on the current GPU. Throws Refusal.
ConvolutionProblem bias_activation_problem(const OpDesc& desc);

// Of ordinary cores, in fp32: im2col, implicit GEMM, and Winograd with tiles of 2x2 and of 4x4.
std::vector<ConvolutionRung> fp32_convolution_rungs();

// For few channels, at stride and dilation 1.
std::vector<ConvolutionRung> direct_convolution_rungs();

// Of Hopper's tensor cores, in TF32: all of them, and those for few tiles.
std::vector<ConvolutionRung> tensor_convolution_rungs();
std::vector<ConvolutionRung> small_convolution_rungs();

}  // namespace gpunn::cuda_tiled
