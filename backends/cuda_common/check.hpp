#pragma once

#include <gpunn/plugin_cuda.hpp>

namespace gpunn::cuda {

// Throws plugin::Failure if `code` is not success. `what` names the failed action, such as "cudaMalloc of the
// workspace".
inline void check(cudaError_t code, const char* what) { plugin::check_cuda(code, what); }

}  // namespace gpunn::cuda
