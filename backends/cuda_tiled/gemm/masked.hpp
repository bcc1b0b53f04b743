// The gradient of a dense layer's input, if a ReLU made that input, as one matrix product. dx = dy w is kept where y >
// 0, and its column sums are the gradient of the bias in front of the ReLU. It replaces MATMUL and
// BIAS_ACTIVATION_BACKWARD; dx is written once and not read again.
//
// Each tile masks its sums while they are in registers, adds up its columns, and writes the column sums to memory
// before it stores its part of dx. The last block (or warp) in a column of tiles adds these sums in the order of the
// rows: the same bits every time. dx has the bits of the same variant without the mask.
//
// Only variants that gain from it have this epilogue. H200: in fp32 tiles of 128 x 256 gain nothing (1024 x 4096 x
// 4096: 692 us, 689 with a separate pass). With the copies of gemm:11 the loop loses more than the pass costs (512 x
// 2048 x 2048: 112 us, 108). Persistent blocks lack registers to load much of the mask at a time (TF32, 1024 x 2048 x
// 2048: 64 us, 53).
//
// H200, us, dx of m x n x k, against the same variant and BIAS_ACTIVATION_BACKWARD. fp32: 128 x 512 x 512 7.7, 9.0; 256
// x 512 x 512 9.5, 11.1; 512 x 1024 x 1024 43.1, 45.3; 128 x 4096 x 4096 160.0, 161.1; 4096 x 512 x 512 58.0, 62.7;
// 2048 x 2048 x 10 13.0, 19.3. TF32: 128 x 512 x 512 7.2, 8.6; 512 x 1024 x 1024 10.7, 14.6; 1024^3 14.5, 20.8; 128 x
// 4096 x 4096 26.3, 28.8; 1024 x 2048 x 2048 34.0, 40.0; 2048 x 1024 x 1024 21.7, 29.4; 4096 x 512 x 512 15.2, 21.8
// (persistent blocks and a pass: 26.7). Against gemm:wgmma_small and a pass: 1024^3 14.0, 19.0; 512 x 1024 x 1024 10.9,
// 13.6; 256 x 512 x 512 6.8, 7.8.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda_common/add_op.hpp"
#include "gemm/gemm.hpp"

namespace gpunn::cuda_tiled {

// A variant of the GEMM ladder with this epilogue. Of its args in(0) is dy [m, k], in(1) w [k, n], in(2) y [m, n],
// out(0) dx [m, n] and out(1) the sums [n]. It takes counters_of_mask(problem) counters, zero between launches.
struct MaskedVariant {
  const char* name = nullptr;
  std::string (*refuses)(const Gemm&) = nullptr;
  uint64_t (*workspace_bytes)(const Gemm&) = nullptr;
  void (*run)(const Gemm&, cudaStream_t, const backends::OpArgs&, unsigned* counters) = nullptr;
};

// The variants of each file, in the ladder's order; without a bias.
std::vector<MaskedVariant> masked_wgmma_variants();
std::vector<MaskedVariant> masked_warp_tiles_variants();
std::vector<MaskedVariant> masked_small_tiles_variants();
std::vector<MaskedVariant> masked_variants();  // all

// One counter for every 16 columns, in whole tiles.
constexpr int64_t counters_of_mask(const Gemm& problem) { return (problem.shape.n + 127) / 128 * 8; }

// Why no variant has this epilogue for a product whose columns are added up in so many parts.
std::string refusal_of_mask(const Gemm& problem, int64_t parts);

inline uint64_t bytes_of_parts(const Gemm& problem, int64_t parts) {
  return sizeof(float) * static_cast<uint64_t>(parts * problem.shape.n);
}

}  // namespace gpunn::cuda_tiled
