// Copies operands to the workspace in the layout and type that the tensor-core kernels need.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace gpunn::cuda_tiled {

// A packed [rows, columns] matrix to be transposed. Lines of the copy lie `pitch` (a multiple of 4, at least `rows`)
// apart.
struct TransposedCopy {
  const float* from = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  float* to = nullptr;
  int64_t pitch = 0;
};

// Makes both copies in one kernel; one may be empty. The values between `rows` and the pitch are undefined.
void copy_transposed(const TransposedCopy& first, const TransposedCopy& second, cudaStream_t stream);

// to[i][j] = from[i][j] with another pitch.
void copy_pitched(const float* from, int64_t rows, int64_t columns, float* to, int64_t pitch, cudaStream_t stream);

// A packed float32 matrix to be rounded to bfloat16. Lines of the copy lie `pitch` (a multiple of 8) apart.
struct Bf16Copy {
  const float* from;
  int64_t rows;
  int64_t columns;
  uint16_t* to;
  int64_t pitch;
};

// Makes both copies in one kernel, rounded to nearest, ties to even.
void copy_bf16(const Bf16Copy& first, const Bf16Copy& second, cudaStream_t stream);

}  // namespace gpunn::cuda_tiled
