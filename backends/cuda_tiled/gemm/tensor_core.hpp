// The variants of the GEMM ladder that multiply on tensor cores, in TF32 or BF16 where the op's precision allows it.
#pragma once

#include <vector>

#include "gemm/gemm.hpp"
#include "variants.hpp"

namespace gpunn::cuda_tiled {

// The best first, which is the one that serves where nothing is tuned.
std::vector<Variant<Gemm>> tensor_core_variants();

}  // namespace gpunn::cuda_tiled
