// Convolutions in TF32 on Hopper's tensor cores: the forward pass and the data gradient as gathers (tensor_gather.hpp),
// the filter gradient as a product over pixels (tensor_filter.hpp). Each comes with several tiles to choose from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <cuda_runtime_api.h>

#include "conv/wgrad/wgmma_wgrad.hpp"
#include "conv/fprop/wgmma_fprop.hpp"

namespace gpunn::cuda_tiled::tensor {

enum class Direction { kForward, kDataGradient };

// Outputs by filters.
inline constexpr std::array<GatherTile, 4> kGatherTiles = {{{256, 128}, {512, 64}, {128, 128}, {128, 64}}};

// Rows of dw in slots of 64, filters, and pixels of a stage.
inline constexpr std::array<FilterTile, 4> kFilterTiles = {{{9, 64, 64}, {2, 128, 64}, {2, 64, 64}, {9, 64, 32}}};

// Nothing where the tile does not serve the shape.
std::optional<GatherPlan> gather_plan(const backends::ConvolutionShape& shape, Direction direction, int tile,
                                      int multiprocessors);

struct GatherOperands {
  const float* x = nullptr;  // of a data gradient dy
  const float* w = nullptr;
  const float* bias = nullptr;  // null: none
  float* y = nullptr;           // of a data gradient dx
  bool relu = false;
};

// `workspace`: of workspace_bytes(plan).
void run_gather(const GatherPlan& plan, int tile, const GatherOperands& operands, float* workspace,
                cudaStream_t stream);

std::optional<FilterPlan> filter_plan(const backends::ConvolutionShape& shape, int tile, int multiprocessors);

void run_filter_gradient(const FilterPlan& plan, int tile, const float* dy, const float* x, float* dw, float* workspace,
                         cudaStream_t stream);

}  // namespace gpunn::cuda_tiled::tensor
