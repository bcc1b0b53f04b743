// A matrix product as the variants of the GEMM ladder see it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/matmul.hpp"
#include "epilogue.cuh"

namespace gpunn::cuda_tiled {

struct Gemm {
  backends::Matmul shape;
  bool bias = false;      // MATMUL_BIAS_ACTIVATION: in<float>(2) is the bias [n]
  int32_t precision = 0;  // GPUNN_PRECISION_: what a variant may round the factors to
  int64_t terms = 0;      // of a sum, for the autotuner: k

  Epilogue epilogue(const backends::OpArgs& args) const { return {bias ? args.in<float>(2) : nullptr, shape.relu}; }
};

Gemm gemm_of(const backends::OpDesc& desc);
Gemm gemm_bias_activation_of(const backends::OpDesc& desc);

// The key under which the autotuner stores a choice: "gemm m 128 n 10 k 84 nt bias relu fp32".
std::string key_of(const Gemm& problem);

}  // namespace gpunn::cuda_tiled
