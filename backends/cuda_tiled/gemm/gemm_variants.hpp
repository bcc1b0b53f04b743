// The kernel variants of matrix products. Those of fp32 have one file each; gemm.cpp puts them in order.
#pragma once

#include <vector>

#include "gemm/gemm.hpp"
#include "variants.hpp"

namespace gpunn::cuda_tiled {

Variant<Gemm> shared_tiles_variant();
Variant<Gemm> register_tiles_variant();
Variant<Gemm> vector_loads_variant();
Variant<Gemm> async_copies_variant();
std::vector<Variant<Gemm>> warp_tiles_variants();
std::vector<Variant<Gemm>> small_tiles_variants();
Variant<Gemm> mn_major_copies_variant();
Variant<Gemm> sliced_tiles_variant();
Variant<Gemm> stream_k_variant();

std::vector<Variant<Gemm>> fp32_gemm_variants();  // all of them, in order

// The variants on tensor cores, in TF32 or BF16 if the op's precision allows it.
std::vector<Variant<Gemm>> tensor_core_variants();

}  // namespace gpunn::cuda_tiled
