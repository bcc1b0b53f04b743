#include "kernels.hpp"

namespace gpunn::cpu {

void add_kernels(plugin::Device& device) {
#define GPUNN_FAMILY(name) add_##name##_kernels(device);
#include "cpu_families.inc"
#undef GPUNN_FAMILY
}

}  // namespace gpunn::cpu
