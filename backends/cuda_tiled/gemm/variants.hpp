// The rungs of the fp32 GEMM ladder, a file each; gemm.cpp puts them in order.
#pragma once

#include <vector>

#include "gemm/gemm.hpp"
#include "variants.hpp"

namespace gpunn::cuda_tiled {

Rung<Gemm> shared_tiles_rung();
Rung<Gemm> register_tiles_rung();
Rung<Gemm> vector_loads_rung();
Rung<Gemm> async_copies_rung();
std::vector<Rung<Gemm>> warp_tiles_rungs();
std::vector<Rung<Gemm>> small_tiles_rungs();
Rung<Gemm> k_major_copies_rung();
Rung<Gemm> sliced_tiles_rung();
Rung<Gemm> stream_k_rung();
std::vector<Rung<Gemm>> strassen_rungs();

std::vector<Rung<Gemm>> fp32_gemm_rungs();  // all of them, in order

}  // namespace gpunn::cuda_tiled
