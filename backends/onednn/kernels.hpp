// The op families that this backend serves. `threads` is how many oneDNN computes with, as of the device.
#pragma once

#include <gpunn/kernel.hpp>

namespace gpunn::onednn {

void add_convolution_kernels(plugin::Device& device, int threads);
void add_matmul_kernels(plugin::Device& device, int threads);

}  // namespace gpunn::onednn
