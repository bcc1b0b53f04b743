#pragma once

#include "common/requirements.hpp"
#include "cuda_common/algorithm.hpp"
#include "device.hpp"

namespace gpunn::cuda_tiled {

// What runs a MATMUL on this device: the variant that the autotuner chooses.
cuda::AlgorithmPtr choose_gemm(TiledDevice& device, const backends::OpDesc& desc);

}  // namespace gpunn::cuda_tiled
