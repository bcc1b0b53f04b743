// The forward pass of convolutions with few filters, as at the end of networks that generate images. Images are
// channels-last bf16 or f16.
#pragma once

#include "conv/half/half_convolution.hpp"

namespace gpunn::cuda_tiled {

// The variant conv:half_narrow.
Variant<HalfConvolution> narrow_variant();

}  // namespace gpunn::cuda_tiled
