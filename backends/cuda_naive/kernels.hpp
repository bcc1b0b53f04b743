// The op families of the naive CUDA backend.
#pragma once

#include <gpunn/kernel.hpp>

namespace gpunn::cuda_naive {

#define GPUNN_FAMILY(name) void add_##name##_kernels(plugin::Device& device);
#include "families.inc"
#undef GPUNN_FAMILY

}  // namespace gpunn::cuda_naive
