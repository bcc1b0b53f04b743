// What the CUDA backends of the project add to the device of plugin_cuda.hpp.
#pragma once

#include <gpunn/plugin_cuda.hpp>

namespace gpunn::cuda {

using plugin::CudaDevice;

// How many GPUs there are. Throws Failure(GPUNN_NO_DEVICE) saying why there is none that this build can use.
int probe_devices();

// "nvcc 13.0, sm_90a": what the plugins of this build are made of.
const char* build_text();

}  // namespace gpunn::cuda
