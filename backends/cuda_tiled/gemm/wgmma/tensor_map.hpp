// Tensor maps: what Hopper's tensor memory accelerator (TMA) is told of a matrix.
#pragma once

#include <cstdint>

#include <cuda.h>

namespace gpunn::cuda_tiled {

// `outer` lines of `inner` numbers, each line `pitch` numbers after the one before.
struct MatrixInMemory {
  const void* data;
  int64_t inner;
  int64_t outer;
  int64_t pitch;
};

// TMA wants lines to begin at multiples of so many bytes.
inline constexpr int64_t kTensorMapAlignment = 16;

// For copies of boxes of box_outer lines of 128 bytes, swizzled by 128 bytes. Float32 is rounded to TF32 on the way.
// Calls no CUDA function that a capture would mind.
CUtensorMap tf32_tensor_map(const MatrixInMemory& matrix, int box_outer);
CUtensorMap bf16_tensor_map(const MatrixInMemory& matrix, int box_outer);

}  // namespace gpunn::cuda_tiled
