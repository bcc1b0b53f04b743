#include "conv/wgrad/wgmma_wgrad.hpp"

#include <algorithm>

#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda_tiled::tensor {
namespace {}  // namespace

int shared_bytes(const WgradPlan& plan, const WgradTile& tile) {
  const int stage = plan.patch_channels * plan.plane + tile.pixels * tile.filters + tile.pixels;
  return plan.stages * stage * 4 + 2 * plan.stages * 8;
}

std::optional<WgradPlan> plan_wgrad(const backends::ConvolutionShape& shape, const WgradTile& tile, int shared_limit,
                                    int blocks) {
  const std::optional<FpropPlan> geometry = fprop_geometry(shape, {tile.pixels, tile.filters});
  if (!geometry) return std::nullopt;
  WgradPlan plan{};
  plan.geometry = *geometry;
  const FpropPhase& phase = plan.geometry.phase[0];
  plan.taps = phase.taps;
  // Of a batch without end, so that the last tile's patch is as large as any.
  const int patch = patch_rows(phase, 1 << 20, plan.geometry.row_stride, tile.pixels);
  if (!patch_fits(plan.geometry, phase, patch)) return std::nullopt;
  plan.units = patch_units(plan.geometry, phase, patch);
  plan.plane = patch_words(phase, patch);
  plan.plane += (4 - plan.plane % 8 + 8) % 8;  // so that 8 channels of 4 neighbours lie in 32 banks
  const int rows = tile.slots * 64;
  const int channels = plan.geometry.inputs;
  plan.flat = plan.taps > 1 && channels < 64;
  plan.several_channels = plan.taps == 1;
  if (plan.flat != 0) {
    plan.patch_channels = channels;
    plan.channel_tiles = 1;
    plan.row_tiles = static_cast<int>(cuda::divide_up(int64_t{channels} * plan.taps, rows));
  } else if (plan.several_channels != 0) {
    plan.patch_channels = rows;
    plan.channel_tiles = plan.row_tiles = cuda::divide_up(channels, rows);
  } else {
    plan.patch_channels = 64;
    plan.channel_tiles = cuda::divide_up(channels, 64);
    plan.row_tiles = plan.channel_tiles * cuda::divide_up(plan.taps, tile.slots);
  }
  plan.filter_tiles = cuda::divide_up(plan.geometry.outputs, tile.filters);
  constexpr int kMostGridRows = 65535;  // of the kernel that adds the parts, whose blocks have 32 filters each
  if (cuda::divide_up(plan.geometry.outputs, 32) > kMostGridRows) return std::nullopt;
  plan.filter_pitch = cuda::divide_up(plan.geometry.outputs, 32) * 32;
  plan.chunks =
      static_cast<int>(cuda::divide_up(int64_t{plan.geometry.batch} * phase.rows * phase.columns, tile.pixels));
  // Of many stages a block takes two at least: to add the parts of half as many blocks saves more than it costs.
  const int most = plan.chunks >= 64 ? plan.chunks / 2 : plan.chunks;
  plan.splits = std::clamp(blocks / (plan.row_tiles * plan.filter_tiles), 1, most);
  if (plan.part_size() * plan.splits >= int64_t{1} << 31) return std::nullopt;
  for (plan.stages = 4; plan.stages >= 2; --plan.stages) {
    if (shared_bytes(plan, tile) <= shared_limit) return plan;
  }
  return std::nullopt;
}

uint64_t workspace_bytes(const WgradPlan& plan) {
  return static_cast<uint64_t>(plan.part_size()) * static_cast<uint64_t>(plan.splits) * sizeof(float);
}

}  // namespace gpunn::cuda_tiled::tensor
