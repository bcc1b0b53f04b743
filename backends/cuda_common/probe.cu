// Whether there is a GPU that can run what this library holds. A .cu file, since the question is put to a kernel.
#include <string>

#include "cuda_common/check.hpp"
#include "cuda_common/device.hpp"

namespace gpunn::cuda {
namespace {

__global__ void nothing() {}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

[[noreturn]] void no_device(const std::string& why) { throw plugin::Failure(GPUNN_NO_DEVICE, why); }

// Whether the driver finds machine code, or PTX to make some of, for device `index`.
bool has_code_for(int index) {
  cudaFuncAttributes attributes{};
  const bool found = cudaSetDevice(index) == cudaSuccess && cudaFuncGetAttributes(&attributes, nothing) == cudaSuccess;
  cudaGetLastError();
  return found;
}

}  // namespace

const char* build_text() {
  static const std::string text = "nvcc " + std::to_string(__CUDACC_VER_MAJOR__) + "." +
                                  std::to_string(__CUDACC_VER_MINOR__) + ", " + GPUNN_CUDA_ARCHITECTURES;
  return text.c_str();
}

int probe_devices() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    cudaGetLastError();
    no_device(
        "no NVIDIA driver is loaded (libcuda.so.1 was not found or does not start); install one, or choose another "
        "backend");
  }
  if (driver / 1000 < CUDART_VERSION / 1000) {
    no_device("the NVIDIA driver is too old: it supports CUDA " + version_text(driver) +
              ", this backend was built with CUDA " + version_text(CUDART_VERSION) +
              "; update the driver, or build gpunn with an older toolkit");
  }
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess && code != cudaErrorNoDevice) {
    cudaGetLastError();
    no_device(std::string("the NVIDIA driver can't be used: ") + cudaGetErrorString(code) + " (" +
              cudaGetErrorName(code) + ")");
  }
  if (count == 0) {
    cudaGetLastError();
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    no_device(visible == nullptr ? std::string("the NVIDIA driver sees no GPU")
                                 : "no GPU is visible: CUDA_VISIBLE_DEVICES is '" + std::string(visible) + "'");
  }
  for (int index = 0; index < count; ++index) {
    if (has_code_for(index)) return count;
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "reading the GPU's properties");
  no_device(std::string("this plugin was built for ") + GPUNN_CUDA_ARCHITECTURES + ", the GPU '" + properties.name +
            "' is sm_" + std::to_string(properties.major) + std::to_string(properties.minor) +
            "; configure gpunn on this machine, or with -DCMAKE_CUDA_ARCHITECTURES=" +
            std::to_string(properties.major) + std::to_string(properties.minor));
}

}  // namespace gpunn::cuda
