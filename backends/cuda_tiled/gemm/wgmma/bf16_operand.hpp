// Operands rounded to bfloat16 in the workspace, in their original layout: wgmma accepts bfloat16 with either index
// contiguous.
#pragma once

#include <cstdint>

#include "cuda_common/divide_up.hpp"
#include "cuda_common/workspace.hpp"
#include "gemm/wgmma/tensor_map.hpp"

namespace gpunn::cuda_tiled {

// For an operand [k, outer] or, K-major, [outer, k].
struct Bf16Operand {
  int64_t lines, line;

  int64_t pitch() const {
    constexpr int64_t kAligned = kTensorMapAlignment / int64_t{sizeof(uint16_t)};
    return cuda::divide_up(line, kAligned) * kAligned;
  }
  uint64_t bytes() const {
    return cuda::workspace_aligned(sizeof(uint16_t) * static_cast<uint64_t>(lines) * static_cast<uint64_t>(pitch()));
  }
};

inline Bf16Operand bf16_operand(int64_t outer, int64_t k, bool along_k) {
  return {.lines = along_k ? outer : k, .line = along_k ? k : outer};
}

}  // namespace gpunn::cuda_tiled
