#pragma once

namespace gpunn::cpu {

// What a convolution does with its sums.
struct ConvolutionEpilogue {
  const float* bias = nullptr;  // by channel of the target; null: none
  bool add = false;             // to what the target holds already
  bool relu = false;            // of all of that
};

}  // namespace gpunn::cpu
