// The device class of the project's CUDA backends, which is that of plugin_cuda.hpp, a count of GPUs, and a description
// of the build.
#pragma once

#include <gpunn/plugin_cuda.hpp>

namespace gpunn::cuda {

using plugin::CudaDevice;

// Returns the number of GPUs. Throws Failure(GPUNN_NO_DEVICE) with the reason if this build can use none.
int probe_devices();

// The compiler and the GPU architectures of this build, such as "nvcc 13.0, sm_90a".
const char* build_text();

}  // namespace gpunn::cuda
