// How the tensor-core kernels end.
#pragma once

namespace gpunn::cuda_tiled {

// The last step, on a finished sum, of the thread that stores it.
struct TensorCoreEpilogue {
  const float* bias = nullptr;  // [n]; null: none
  bool relu = false;
};

}  // namespace gpunn::cuda_tiled
