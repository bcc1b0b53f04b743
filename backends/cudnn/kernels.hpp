// The op families that this backend serves.
#pragma once

namespace gpunn::cudnn {

class CudnnDevice;

#define GPUNN_FAMILY(name) void add_##name##_kernels(CudnnDevice& device);
#include "families.inc"
#undef GPUNN_FAMILY

}  // namespace gpunn::cudnn
