// How a product or a convolution ends.
#pragma once

namespace gpunn::cuda_tiled {

// The last step, on a finished sum, of the thread that stores it.
struct Epilogue {
  const float* bias = nullptr;  // a number a column of a product, or a channel of a convolution; null: none
  bool relu = false;
};

}  // namespace gpunn::cuda_tiled
