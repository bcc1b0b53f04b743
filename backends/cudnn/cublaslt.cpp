#include "cublaslt.hpp"

#include <gpunn/kernel.hpp>

#include <dlfcn.h>

namespace gpunn::cudnn {
namespace {

using plugin::Failure;

std::string loader_text() {
  const char* text = dlerror();
  return text == nullptr ? "unknown reason" : text;
}

template <class Function>
void find(void* library, Function& function, const char* name) {
  void* address = dlsym(library, name);
  if (address == nullptr) {
    throw Failure(GPUNN_NO_DEVICE, std::string("cuBLASLt lacks ") + name + ": " + loader_text());
  }
  function = reinterpret_cast<Function>(address);
}

CublasLt load() {
  const std::string file = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Failure(GPUNN_NO_DEVICE, "cuBLASLt can't be loaded: " + loader_text() +
                                       "; install the CUDA libraries, or put their folder on LD_LIBRARY_PATH");
  }
  CublasLt lt{};
  find(library, lt.create, "cublasLtCreate");
  find(library, lt.destroy, "cublasLtDestroy");
  find(library, lt.version, "cublasLtGetVersion");
  find(library, lt.status_string, "cublasLtGetStatusString");
  find(library, lt.matmul, "cublasLtMatmul");
  find(library, lt.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(library, lt.check_algorithm, "cublasLtMatmulAlgoCheck");
  find(library, lt.create_operation, "cublasLtMatmulDescCreate");
  find(library, lt.destroy_operation, "cublasLtMatmulDescDestroy");
  find(library, lt.set_operation, "cublasLtMatmulDescSetAttribute");
  find(library, lt.create_layout, "cublasLtMatrixLayoutCreate");
  find(library, lt.destroy_layout, "cublasLtMatrixLayoutDestroy");
  find(library, lt.create_preference, "cublasLtMatmulPreferenceCreate");
  find(library, lt.destroy_preference, "cublasLtMatmulPreferenceDestroy");
  find(library, lt.set_preference, "cublasLtMatmulPreferenceSetAttribute");
  return lt;
}

gpunn_status status_of(cublasStatus_t code) {
  switch (code) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return GPUNN_OUT_OF_MEMORY;
    case CUBLAS_STATUS_INVALID_VALUE:
      return GPUNN_INVALID_ARGUMENT;
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return GPUNN_UNSUPPORTED;
    default:
      return GPUNN_INTERNAL;
  }
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt library = load();
  return library;
}

void throw_cublaslt(cublasStatus_t code, const char* what) {
  throw Failure(status_of(code),
                std::string(what) + ": " + cublaslt().status_string(code) + " (" + std::to_string(code) + ")");
}

}  // namespace gpunn::cudnn
