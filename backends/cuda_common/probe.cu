// Checks whether there is a GPU that can run the code in this library. This is a .cu file because the check needs a
// kernel.
#include <string>

#include "cuda_common/device.hpp"

namespace gpunn::cuda {
namespace {

__global__ void nothing() {}

}  // namespace

const char* build_text() {
  static const std::string text = "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." +
                                  std::to_string(__CUDACC_VER_MINOR__) + ", " + GPUNN_CUDA_ARCHITECTURES;
  return text.c_str();
}

int probe_devices() { return plugin::probe_cuda(reinterpret_cast<const void*>(nothing), GPUNN_CUDA_ARCHITECTURES); }

}  // namespace gpunn::cuda
