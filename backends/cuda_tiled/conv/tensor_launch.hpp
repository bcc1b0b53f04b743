// Launching the kernels of tensor_core.cuh. For .cu files.
#pragma once

#include <utility>

#include "cuda_common/launch.hpp"

namespace gpunn::cuda_tiled::tensor {

// Launches a kernel that may begin before the one before it in the stream is done, for which it waits itself.
template <class... Parameters, class... Arguments>
void launch_early(void (*kernel)(Parameters...), const cuda::Launch& shape, cudaStream_t stream,
                  Arguments&&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cuda::check(cudaLaunchKernelEx(&config, kernel, Parameters(std::forward<Arguments>(arguments))...),
              "launching a kernel");
}

}  // namespace gpunn::cuda_tiled::tensor
