// MATMUL and MATMUL_BIAS_ACTIVATION of bf16 and f16 tensors.
#pragma once

#include <string>
#include <vector>

#include "gemm/gemm.hpp"
#include "half/half_plan.hpp"
#include "variants.hpp"

namespace gpunn::cuda_tiled {

struct HalfGemm {
  Gemm gemm;
  int32_t dtype = GPUNN_BF16;
  int64_t terms = 0;  // of a sum, for the autotuner
};

// The variants gemm:half_128x256 and so on, named by their tiles.
std::vector<Variant<HalfGemm>> half_gemm_variants();

}  // namespace gpunn::cuda_tiled
