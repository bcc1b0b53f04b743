#include "half/half_launch.cuh"

namespace gpunn::cuda_tiled {

template void launch_half_tile<half_tile("128x192")>(const HalfPlan& plan, int blocks, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
