#include "cudnn_check.hpp"

namespace gpunn::cudnn {

gpunn_status status_of(cudnnStatus_t code) noexcept {
  switch (code) {
    case CUDNN_STATUS_SUCCESS:
      return GPUNN_OK;
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return GPUNN_OUT_OF_MEMORY;
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
      return GPUNN_NO_DEVICE;
    default:
      break;
  }
  constexpr int kBadParameter = 2000;
  constexpr int kNotSupported = 3000;
  switch (CUDNN_STATUS_CATEGORY(static_cast<int>(code))) {
    case kBadParameter:
      return GPUNN_INVALID_ARGUMENT;
    case kNotSupported:
      return GPUNN_UNSUPPORTED;
    default:
      return GPUNN_INTERNAL;
  }
}

void throw_cudnn(cudnnStatus_t code, const char* what) {
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof(detail));
  detail[sizeof(detail) - 1] = '\0';
  std::string message = std::string(what) + ": " + cudnnGetErrorString(code);
  if (detail[0] != '\0') message += std::string(" (") + detail + ")";
  throw plugin::Failure(status_of(code), message);
}

std::string version_text(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace gpunn::cudnn
