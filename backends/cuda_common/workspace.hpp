// Parts of a workspace, one behind the other.
#pragma once

#include <cstdint>

#include "cuda_common/device.hpp"
#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda {

// Where the next part begins behind one of so many bytes: aligned as an allocation is.
constexpr uint64_t workspace_aligned(uint64_t bytes) {
  return divide_up(bytes, CudaDevice::kAlignment) * CudaDevice::kAlignment;
}

}  // namespace gpunn::cuda
