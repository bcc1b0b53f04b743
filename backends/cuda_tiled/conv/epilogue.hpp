// How a convolution ends.
#pragma once

namespace gpunn::cuda_tiled {

// The last step, on a finished sum, of the thread that stores it.
struct Epilogue {
  const float* bias = nullptr;  // a number a channel of y; null: none
  bool relu = false;
};

}  // namespace gpunn::cuda_tiled
