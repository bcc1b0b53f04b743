#pragma once

#include <gpunn/plugin_cuda.hpp>

namespace gpunn::cuda {

// Throws plugin::Failure where `code` is not success. `what` says what was done, as "cudaMalloc of the workspace".
inline void check(cudaError_t code, const char* what) { plugin::check_cuda(code, what); }

}  // namespace gpunn::cuda
