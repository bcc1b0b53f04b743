#pragma once

#include "common/requirements.hpp"
#include "cuda_common/algorithm.hpp"
#include "device.hpp"

namespace gpunn::cuda_tiled {

// The variant that the autotuner chooses for a MATMUL on this device.
cuda::AlgorithmPtr choose_gemm(TiledDevice& device, const backends::OpDesc& desc);

}  // namespace gpunn::cuda_tiled
