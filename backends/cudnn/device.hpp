// The GPU with the handles of cuDNN and cuBLASLt, which are made at first use.
#pragma once

#include <string>

#include <cudnn.h>

#include "cublaslt.hpp"
#include "cuda_common/collective.hpp"
#include "cuda_common/tuned_device.hpp"

namespace gpunn::cudnn {

// alpha and beta of both libraries: y = kOne * f(x) + kZero * y.
inline constexpr float kOne = 1.0F;
inline constexpr float kZero = 0.0F;

// How the name of a tuned algorithm begins: with bias and activation in the library's kernel, or in one of our own
// after it.
inline constexpr const char* kFused = "fused ";
inline constexpr const char* kPlain = "plain ";

class CudnnDevice final : public cuda::TunedDevice {
 public:
  explicit CudnnDevice(const gpunn_device_options& options);
  ~CudnnDevice() override;
  CudnnDevice(const CudnnDevice&) = delete;
  CudnnDevice& operator=(const CudnnDevice&) = delete;

  std::unique_ptr<plugin::Communicator> create_communicator(const plugin::CommunicatorOptions& options) {
    return cuda::create_communicator(*this, options);
  }

  // Do not call it at op_query, which must be free of side effects: loading cuDNN takes a good part of a second.
  cudnnHandle_t cudnn_handle();
  cublasLtHandle_t cublaslt_handle();

 private:
  cudnnHandle_t cudnn_ = nullptr;
  cublasLtHandle_t cublaslt_ = nullptr;
};

}  // namespace gpunn::cudnn
