// Convolutions with few filters, as networks that make images end: forward, of channels-last bf16 and f16 images.
#pragma once

#include "conv/half/half_convolution.hpp"

namespace gpunn::cuda_tiled {

// conv:half_narrow
Variant<HalfConvolution> narrow_variant();

}  // namespace gpunn::cuda_tiled
