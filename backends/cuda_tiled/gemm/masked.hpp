// The gradient of a dense layer's input behind the ReLU that made the input, as one product: dx = dy w, let pass where
// y > 0, and the sums of its columns, which are the gradient of the bias in front of that ReLU. MATMUL and
// BIAS_ACTIVATION_BACKWARD in one; dx goes to memory once and is not read again.
//
// Each tile masks its sums while they are in registers, adds up its columns, and leaves those sums in memory before it
// stores its part of dx. The block (or warp) that comes last in a column of tiles adds them, in the order of the rows:
// the same bits every time. dx has the bits of the same rung without the mask.
//
// H200: MEASURED
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda_common/add_op.hpp"
#include "gemm.hpp"

namespace gpunn::cuda_tiled {

// A rung of the GEMM ladder with this epilogue. Of its args in(0) is dy [m, k], in(1) w [k, n], in(2) y [m, n], out(0)
// dx [m, n] and out(1) the sums [n]. It takes counters_of_mask(problem) counters, zero between launches.
struct MaskedRung {
  const char* name = nullptr;
  std::string (*refuses)(const Gemm&) = nullptr;
  uint64_t (*workspace_bytes)(const Gemm&) = nullptr;
  void (*run)(const Gemm&, cudaStream_t, const backends::OpArgs&, unsigned* counters) = nullptr;
};

// Those of a file, in the ladder's order; without a bias.
std::vector<MaskedRung> masked_wgmma_rungs();
std::vector<MaskedRung> masked_warp_tiles_rungs();
std::vector<MaskedRung> masked_small_tiles_rungs();
std::vector<MaskedRung> masked_rungs();  // all

// A counter for every 16 columns, in whole tiles.
constexpr int64_t counters_of_mask(const Gemm& problem) { return (problem.shape.n + 127) / 128 * 8; }

// Why no rung has this epilogue for a product whose columns are added up in so many parts.
std::string refusal_of_mask(const Gemm& problem, int64_t parts);

inline uint64_t bytes_of_parts(const Gemm& problem, int64_t parts) {
  return sizeof(float) * static_cast<uint64_t>(parts * problem.shape.n);
}

}  // namespace gpunn::cuda_tiled
