// cuDNN's return codes as the ABI's errors.
#pragma once

#include <gpunn/kernel.hpp>

#include <string>

#include <cudnn.h>

namespace gpunn::cudnn {

gpunn_status status_of(cudnnStatus_t code) noexcept;

[[noreturn]] void throw_cudnn(cudnnStatus_t code, const char* what);

// Throws plugin::Failure where `code` is not success. `what` says what was done, as "making a cuDNN handle".
inline void check(cudnnStatus_t code, const char* what) {
  if (code != CUDNN_STATUS_SUCCESS) throw_cudnn(code, what);
}

// "9.19.0" from 91900.
std::string version_text(std::size_t version);

}  // namespace gpunn::cudnn
