// The op families of the CPU backend, a file each: add_<family>_kernels is in <family>.cpp.
#pragma once

#include <gpunn/kernel.hpp>

namespace gpunn::cpu {

#define GPUNN_FAMILY(name) void add_##name##_kernels(plugin::Device& device);
#include "cpu_families.inc"
#undef GPUNN_FAMILY

// All of them.
void add_kernels(plugin::Device& device);

}  // namespace gpunn::cpu
