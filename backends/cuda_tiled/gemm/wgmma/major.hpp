#pragma once

#include <cstdint>

namespace gpunn::cuda_tiled {

// Which index of an operand runs along memory, as CUTLASS says it.
enum class Major : uint8_t { kK, kMN };

}  // namespace gpunn::cuda_tiled
