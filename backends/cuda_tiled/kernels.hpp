// The op families of this backend, a file each.
#pragma once

namespace gpunn::cuda_tiled {

class TiledDevice;

void add_gemm_kernels(TiledDevice& device);

}  // namespace gpunn::cuda_tiled
