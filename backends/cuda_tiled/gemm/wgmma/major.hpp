#pragma once

#include <cstdint>

namespace gpunn::cuda_tiled {

// Which index of an operand is contiguous in memory, in CUTLASS's terms.
enum class Major : uint8_t { kK, kMN };

}  // namespace gpunn::cuda_tiled
