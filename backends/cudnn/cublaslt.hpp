// Loads cuBLASLt when a device is opened, not with the plugin. The library has half a gigabyte, and even a warm dlopen
// takes 50 ms, which listing the plugins should not cost.
#pragma once

#include <string>
#include <type_traits>

#include <cublasLt.h>

namespace gpunn::cudnn {

// The functions used, under their names in cublasLt.h.
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

// Loads the library at the first call and keeps it until the process ends. Throws Failure(GPUNN_NO_DEVICE) with the
// loader's message on failure.
const CublasLt& cublaslt();

[[noreturn]] void throw_cublaslt(cublasStatus_t code, const char* what);

inline void check(cublasStatus_t code, const char* what) {
  if (code != CUBLAS_STATUS_SUCCESS) throw_cublaslt(code, what);
}

}  // namespace gpunn::cudnn
