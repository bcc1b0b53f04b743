// CONV2D, its gradients and CONV2D_BIAS_ACTIVATION of channels-last bf16 and f16 images as products of
// half/half_product.hpp. A 1x1 convolution of stride 1 is an ordinary product of its pixels.
#pragma once

#include <string>
#include <vector>

#include "common/convolution.hpp"
#include "half/half_plan.hpp"
#include "variants.hpp"

namespace gpunn::cuda_tiled {

struct HalfConvolution {
  ConvolutionPass pass = ConvolutionPass::forward;
  ConvolutionShape shape{};
  int32_t dtype = GPUNN_BF16;
  bool bias = false;
  bool relu = false;
  int64_t terms = 0;  // of a sum, for the autotuner

  // Those of packed images convert them; these read them as they lie.
  int score() const { return 2; }
};

// conv:half_128x256 and so on, by their tiles.
std::vector<Variant<HalfConvolution>> half_convolution_variants();

}  // namespace gpunn::cuda_tiled
