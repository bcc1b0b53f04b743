#include "device.hpp"

#include "cuda_common/check.hpp"
#include "cudnn_check.hpp"
#include "kernels.hpp"

namespace gpunn::cudnn {

CudnnDevice::CudnnDevice(const gpunn_device_options& options)
    : TunedDevice(options, "cudnn",
                  {"cuDNN " + version_text(cudnnGetVersion()), "cuBLASLt " + std::to_string(cublaslt().version())}) {
#define GPUNN_FAMILY(name) add_##name##_kernels(*this);
#include "families.inc"
#undef GPUNN_FAMILY
}

CudnnDevice::~CudnnDevice() {
  cudaSetDevice(index());
  if (cudnn_ != nullptr) cudnnDestroy(cudnn_);
  if (cublaslt_ != nullptr) cublaslt().destroy(cublaslt_);
}

cudnnHandle_t CudnnDevice::cudnn_handle() {
  if (cudnn_ == nullptr) {
    cuda::check(cudaSetDevice(index()), "choosing the device");
    check(cudnnCreate(&cudnn_), "starting cuDNN");
  }
  return cudnn_;
}

cublasLtHandle_t CudnnDevice::cublaslt_handle() {
  if (cublaslt_ == nullptr) {
    cuda::check(cudaSetDevice(index()), "choosing the device");
    check(cublaslt().create(&cublaslt_), "starting cuBLASLt");
  }
  return cublaslt_;
}

}  // namespace gpunn::cudnn
