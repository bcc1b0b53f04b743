// The GPU architecture, which kernels check before they say whether they serve a shape.
#pragma once

namespace gpunn::cuda_tiled {

// The compute capability of the current device, 90 for 9.0; 0 if there is no device.
int compute_capability();
int multiprocessors();
int shared_memory_of_block();  // the most that a block may ask for, in bytes

}  // namespace gpunn::cuda_tiled
