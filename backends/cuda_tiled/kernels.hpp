// The op families that this backend serves.
#pragma once

namespace gpunn::cuda_tiled {

class TiledDevice;

#define GPUNN_FAMILY(name) void add_##name##_kernels(TiledDevice& device);
#include "families.inc"
#undef GPUNN_FAMILY

}  // namespace gpunn::cuda_tiled
