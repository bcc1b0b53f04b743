// Turns cuDNN's return codes into errors of the plugin ABI.
#pragma once

#include <gpunn/kernel.hpp>

#include <string>

#include <cudnn.h>

namespace gpunn::cudnn {

gpunn_status status_of(cudnnStatus_t code) noexcept;

[[noreturn]] void throw_cudnn(cudnnStatus_t code, const char* what);

// Throws plugin::Failure if `code` is not success. `what` names the failed action, such as "making a cuDNN handle".
inline void check(cudnnStatus_t code, const char* what) {
  if (code != CUDNN_STATUS_SUCCESS) throw_cudnn(code, what);
}

// The version as text: "9.19.0" for 91900.
std::string version_text(std::size_t version);

}  // namespace gpunn::cudnn
