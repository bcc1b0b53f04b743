#include "cuda_common/check.hpp"

#include <string>

namespace gpunn::cuda {

gpunn_status status_of(cudaError_t code) noexcept {
  switch (code) {
    case cudaSuccess:
      return GPUNN_OK;
    case cudaErrorMemoryAllocation:
      return GPUNN_OUT_OF_MEMORY;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevice:
      return GPUNN_INVALID_ARGUMENT;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceNotLicensed:
      return GPUNN_NO_DEVICE;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorStreamCaptureUnsupported:
      return GPUNN_UNSUPPORTED;
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorExternalDevice:
    case cudaErrorTensorMemoryLeak:
      return GPUNN_DEVICE_LOST;
    default:
      return GPUNN_INTERNAL;
  }
}

void throw_cuda(cudaError_t code, const char* what) {
  cudaGetLastError();  // an error that is told must not be told again by the next launch
  throw plugin::Failure(status_of(code),
                        std::string(what) + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")");
}

}  // namespace gpunn::cuda
