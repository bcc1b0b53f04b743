#pragma once

#include <gpunn/plugin_cuda.hpp>

namespace gpunn::cuda {

using plugin::CudaEvent;
using plugin::CudaStream;

// The native stream behind a stream that the host handed to this plugin.
inline cudaStream_t native(plugin::Stream& stream) { return plugin::cuda_stream(stream); }

}  // namespace gpunn::cuda
