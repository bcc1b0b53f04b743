// The weight gradient of 3x3 convolutions of stride 1. Images are channels-last bf16 or f16.
#pragma once

#include "conv/half/half_convolution.hpp"

namespace gpunn::cuda_tiled {

// The variant conv:half_patch.
Variant<HalfConvolution> patch_variant();

}  // namespace gpunn::cuda_tiled
