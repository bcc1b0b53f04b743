// Convolutions in TF32 on Hopper's tensor cores: the forward pass and the data gradient (wgmma_fprop.hpp), and the
// weight gradient as a product over pixels (wgmma_wgrad.hpp). Each has several tiles to choose from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <cuda_runtime_api.h>

#include "conv/fprop/wgmma_fprop.hpp"
#include "conv/wgrad/wgmma_wgrad.hpp"

namespace gpunn::cuda_tiled::tensor {

enum class Direction { kFprop, kDgrad };

// The tiles, outputs x filters.
inline constexpr std::array<FpropTile, 4> kFpropTiles = {{{256, 128}, {512, 64}, {128, 128}, {128, 64}}};

// The tiles: rows of dw in slots of 64, filters, and pixels of a stage.
inline constexpr std::array<WgradTile, 4> kWgradTiles = {{{9, 64, 64}, {2, 128, 64}, {2, 64, 64}, {9, 64, 32}}};

// Returns nothing if the tile does not serve the shape.
std::optional<FpropPlan> fprop_plan(const backends::ConvolutionShape& shape, Direction direction, int tile,
                                    int multiprocessors);

struct FpropOperands {
  const float* x = nullptr;  // of a data gradient dy
  const float* w = nullptr;
  const float* bias = nullptr;  // null: none
  float* y = nullptr;           // of a data gradient dx
  bool relu = false;
};

// `workspace` has workspace_bytes(plan) bytes.
void run_fprop(const FpropPlan& plan, int tile, const FpropOperands& operands, float* workspace, cudaStream_t stream);

std::optional<WgradPlan> wgrad_plan(const backends::ConvolutionShape& shape, int tile, int multiprocessors);

void run_wgrad(const WgradPlan& plan, int tile, const float* dy, const float* x, float* dw, float* workspace,
               cudaStream_t stream);

}  // namespace gpunn::cuda_tiled::tensor
