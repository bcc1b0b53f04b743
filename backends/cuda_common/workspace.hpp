// Sizes of tensors in device memory, and of the parts of a workspace, one behind the other.
#pragma once

#include <gpunn/op_signature.hpp>

#include <cstdint>

#include "cuda_common/device.hpp"
#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda {

// Of a tensor's elements.
inline uint64_t bytes_of(const gpunn_tensor& tensor) {
  return static_cast<uint64_t>(plugin::element_count(tensor)) * ops::dtype_bytes(tensor.dtype);
}

// Where the next part begins behind one of so many bytes: aligned as an allocation is.
constexpr uint64_t workspace_aligned(uint64_t bytes) {
  return divide_up(bytes, CudaDevice::kAlignment) * CudaDevice::kAlignment;
}

}  // namespace gpunn::cuda
