#include "conv/half/half_patch_plan.hpp"

#include "conv/convolution.hpp"
#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::ConvolutionAxis;
using backends::require;
using cuda::divide_up;

// With tiles of this many pixels.
PatchConvolution with_tiles(PatchConvolution plan, int pixels, int64_t images, int shared_memory) {
  const int pitch = plan.row_pitch();
  plan.pixels = pixels;
  plan.patch_rows = (pitch - 1 + pixels - 1) / pitch + 1 + (kPatchTaps - 1) * plan.row_dilation;
  plan.image_units = Divider(divide_up(plan.height * pitch, pixels));
  plan.units = static_cast<int>(images * plan.image_units.by);
  plan.stages = 0;
  plan.stages = std::min(kMostPatchStages, (shared_memory - 1024 - plan.shared_bytes()) / plan.stage_bytes());
  return plan;
}

// Clock cycles of the tensor cores, and those that a tile takes beside.
double cycles_of(const PatchConvolution& plan, int multiprocessors) {
  constexpr double kTileCycles = 300, kTwoStages = 1.1;
  const int walkers = plan.blocks(multiprocessors) / plan.filter_tiles;
  return divide_up(plan.units, walkers) * (plan.stages > 2 ? 1.0 : kTwoStages) *
         (kAllPatchTaps * plan.channel_steps * plan.pixels / 2.0 + kTileCycles);
}

}  // namespace

PatchConvolution plan_patches(const HalfConvolution& problem, int multiprocessors, int shared_memory) {
  const backends::ConvolutionShape& shape = problem.shape;
  const ConvolutionAxis &rows = shape.rows, &columns = shape.columns;
  const bool gradient = problem.pass == backends::ConvolutionPass::backward_data;
  require(rows.taps == kPatchTaps && columns.taps == kPatchTaps && rows.stride == 1 && columns.stride == 1,
          "is for filters of 3x3 and stride 1");
  require(shape.groups == 1 && shape.group_inputs % 8 == 0 && shape.group_outputs % 8 == 0,
          "is for channels and filters by the eight in one group");
  const int64_t channels = gradient ? shape.group_outputs : shape.group_inputs;
  const int64_t filters = gradient ? shape.group_inputs : shape.group_outputs;
  require(channels <= kPatchChannels, "is for sums over at most 64 channels");
  // A data gradient's windows lie the other way round.
  const auto pad_of = [&](const ConvolutionAxis& axis) {
    return static_cast<int>(gradient ? (kPatchTaps - 1) * axis.dilation - axis.pad : axis.pad);
  };
  const int64_t height = gradient ? rows.inputs : rows.outputs, width = gradient ? columns.inputs : columns.outputs;
  const int64_t pitch = width + (kPatchTaps - 1) * columns.dilation;
  require(pitch <= kMostBox && rows.dilation <= kMostBox / kPatchTaps, "the images are too wide");
  require(shape.batch > 0 && height > 0 && width > 0 && filters > 0 && channels > 0, "a tensor is empty");
  constexpr int64_t kMost = int64_t{1} << 30;
  require(shape.batch * height * pitch <= kMost && filters <= kMost, "a tensor is too large");
  PatchConvolution plan;
  plan.height = static_cast<int>(height);
  plan.width = static_cast<int>(width);
  plan.filters = static_cast<int>(filters);
  plan.filter_tiles = static_cast<int>(divide_up(filters, int64_t{kPatchFilters}));
  plan.row_pad = pad_of(rows);
  plan.column_pad = pad_of(columns);
  plan.row_dilation = static_cast<int>(rows.dilation);
  plan.column_dilation = static_cast<int>(columns.dilation);
  plan.pitch = Divider(pitch);
  plan.channel_steps = static_cast<int>(divide_up(channels, int64_t{kPatchStep}));
  plan.epilogue.relu = problem.relu;
  const PatchConvolution narrow = with_tiles(plan, 192, shape.batch, shared_memory);
  const PatchConvolution wide = with_tiles(plan, 256, shape.batch, shared_memory);
  const auto fits = [](const PatchConvolution& tiles) {
    return tiles.stages >= kLeastPatchStages && tiles.patch_rows <= kMostBox;
  };
  require(fits(narrow), "two patches of the image don't fit into shared memory");
  return fits(wide) && cycles_of(wide, multiprocessors) < cycles_of(narrow, multiprocessors) ? wide : narrow;
}

HalfSlabs patch_slabs(const PatchConvolution& plan) {
  return {.count = plan.units,
          .rows = {.image_slabs = plan.image_units,
                   .pixels = plan.pixels,
                   .pitch = plan.pitch,
                   .width = plan.width,
                   .image_rows = int64_t{plan.height} * plan.width}};
}

}  // namespace gpunn::cuda_tiled
