// 3x3 convolutions of stride 1 of channels-last bf16 and f16 images, which fetch a patch of the image once for all nine
// taps. The variants conv:half_patch.
#pragma once

#include "conv/half/half_convolution.hpp"

namespace gpunn::cuda_tiled {

inline constexpr int kPatchTaps = 3;   // of a row, and of a column
inline constexpr int kPatchStep = 16;  // of K, that wgmma takes
inline constexpr int kLeastPatchStages = 2;
inline constexpr int kMostPatchStages = 6;

// Forward, with bias, residual and ReLU, and data gradients.
Variant<HalfConvolution> patch_variant();
void run_patch_convolution(const HalfConvolution& problem, const HalfConvolutionArgs& args, cudaStream_t stream);
// Of the statistics, or sums, behind it.
HalfSlabs patch_slabs(const HalfConvolution& problem);

Variant<HalfConvolution> patch_wgrad_variant();

}  // namespace gpunn::cuda_tiled
