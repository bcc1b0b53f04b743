// The GPU with the libraries' handles, made when first needed, and what has been learnt of their algorithms.
#pragma once

#include <string>

#include <cudnn.h>

#include "cublaslt.hpp"
#include "cuda_common/device.hpp"
#include "tuning_cache.hpp"

namespace gpunn::cudnn {

class CudnnDevice final : public cuda::CudaDevice {
 public:
  explicit CudnnDevice(const gpunn_device_options& options);
  ~CudnnDevice() override;
  CudnnDevice(const CudnnDevice&) = delete;
  CudnnDevice& operator=(const CudnnDevice&) = delete;

  // Never at op_query: it must be free of side effects, and loading cuDNN's parts takes a good part of a second.
  cudnnHandle_t cudnn_handle();
  cublasLtHandle_t cublaslt_handle();

  TuningCache& tuning_cache() { return tuning_cache_; }

 private:
  cudnnHandle_t cudnn_ = nullptr;
  cublasLtHandle_t cublaslt_ = nullptr;
  TuningCache tuning_cache_;
};

}  // namespace gpunn::cudnn
