// The op families of the naive CUDA backend. Each family has its own file: add_<family>_kernels is in <family>.cu.
#pragma once

#include <gpunn/kernel.hpp>

namespace gpunn::cuda_naive {

#define GPUNN_FAMILY(name) void add_##name##_kernels(plugin::Device& device);
#include "naive_families.inc"
#undef GPUNN_FAMILY

}  // namespace gpunn::cuda_naive
