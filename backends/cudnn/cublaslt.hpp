// cuBLASLt, loaded when a device is opened and not with the plugin: the library is half a gigabyte, and even a warm
// dlopen of it takes 50 ms, which whoever only lists the plugins should not pay.
#pragma once

#include <string>
#include <type_traits>

#include <cublasLt.h>

namespace gpunn::cudnn {

// The functions that are used, under the names of cublasLt.h.
struct CublasLt {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtGetStatusString) status_string;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulAlgoCheck) check_algorithm;
  decltype(&cublasLtMatmulDescCreate) create_operation;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
};

// Loads the library at the first call; it stays for the process. Throws Failure(GPUNN_NO_DEVICE) with the loader's
// words where it can't be loaded.
const CublasLt& cublaslt();

[[noreturn]] void throw_cublaslt(cublasStatus_t code, const char* what);

inline void check(cublasStatus_t code, const char* what) {
  if (code != CUBLAS_STATUS_SUCCESS) throw_cublaslt(code, what);
}

}  // namespace gpunn::cudnn
