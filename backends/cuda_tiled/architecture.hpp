// What a kernel needs to know of the GPU before it says whether it serves a shape.
#pragma once

namespace gpunn::cuda_tiled {

// Of the current device: 90 of compute capability 9.0. 0 where there is none.
int compute_capability();
int multiprocessors();
int shared_memory_of_block();  // the most that a block may ask for, in bytes

}  // namespace gpunn::cuda_tiled
