#include "conv/stem/stem.hpp"

#include <algorithm>
#include <limits>

#include "architecture.hpp"
#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::ConvolutionAxis;
using backends::Refusal;
using backends::require;
using cuda::divide_up;

constexpr int64_t kMostChannels = 8;
constexpr int64_t kPiece = 16;  // of K, that one mma.sync takes
constexpr int64_t kMostSharedNumbers = (100 << 10) / 2;
constexpr int64_t kMostSums = 256;  // of a filter's gradient, which lie in registers
constexpr int kAmpere = 80;

std::string refuses(const HalfConvolution& problem) {
  try {
    stem_of(problem);
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return {};
}

uint64_t workspace(const HalfConvolution& problem) {
  return problem.pass == ConvolutionPass::backward_filter ? stem_workspace(stem_of(problem)) : 0;
}

void run(const HalfConvolution& problem, cudaStream_t stream, const OpArgs& args) {
  const Stem stem = stem_of(problem);
  if (problem.pass == ConvolutionPass::forward) {
    run_stem_forward(problem, stem, args, stream);
  } else {
    run_stem_backward_filter(problem, stem, args, stream);
  }
}

}  // namespace

Stem stem_of(const HalfConvolution& problem) {
  const ConvolutionShape& shape = problem.shape;
  const ConvolutionAxis &rows = shape.rows, &columns = shape.columns;
  require(problem.pass != ConvolutionPass::backward_data, "is for forward passes and weight gradients");
  require(!problem.residual, "has no residual to add");
  require(shape.groups == 1 && shape.group_inputs <= kMostChannels, "is for images of up to 8 channels in one group");
  require(shape.group_outputs % 8 == 0, "the filters are no multiple of 8");
  require(rows.dilation == 1 && columns.dilation == 1, "its filters are dilated");
  require(compute_capability() >= kAmpere, "the GPU is of a compute capability below 8.0");
  const bool narrow = shape.group_inputs <= 4 && columns.stride % 2 == 0;
  const int64_t pixel = narrow ? 4 : 8;
  const int64_t taps = columns.taps * pixel, line = divide_up(taps, kPiece) * kPiece;
  const int64_t patch_rows = (kStemRows - 1) * rows.stride + rows.taps;
  const int64_t patch_pitch = divide_up((kStemColumns - 1) * columns.stride * pixel + line, 8) * 8;
  require(rows.taps * line * kStemFilters + patch_rows * patch_pitch <= kMostSharedNumbers,
          "its filters and windows don't fit into shared memory");
  require(problem.pass == ConvolutionPass::forward || rows.taps * line <= kMostSums,
          "its filters have too many taps for registers");
  const int64_t tile_columns = divide_up(columns.outputs, kStemColumns), tile_rows = divide_up(rows.outputs, kStemRows);
  const int64_t tiles = shape.batch * tile_rows * tile_columns;
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  require(tiles <= kMost && rows.inputs * columns.inputs * kMostChannels <= kMost, "a tensor is too large");
  return {.channels = static_cast<int>(shape.group_inputs),
          .filters = static_cast<int>(shape.group_outputs),
          .input_rows = static_cast<int>(rows.inputs),
          .input_columns = static_cast<int>(columns.inputs),
          .output_rows = static_cast<int>(rows.outputs),
          .output_columns = static_cast<int>(columns.outputs),
          .tap_rows = static_cast<int>(rows.taps),
          .tap_columns = static_cast<int>(columns.taps),
          .row_stride = static_cast<int>(rows.stride),
          .column_stride = static_cast<int>(columns.stride),
          .row_pad = static_cast<int>(rows.pad),
          .column_pad = static_cast<int>(columns.pad),
          .pixel = static_cast<int>(pixel),
          .line = static_cast<int>(line),
          .last = static_cast<int>(taps - (line - kPiece)),
          .patch_rows = static_cast<int>(patch_rows),
          .patch_pitch = static_cast<int>(patch_pitch),
          .filter_groups = static_cast<int>(divide_up(shape.group_outputs, kStemFilters)),
          .tiles = static_cast<int>(tiles),
          .by_tile_columns = Divider(tile_columns),
          .by_tile_rows = Divider(tile_rows),
          .by_patch_pixels = Divider(patch_pitch / pixel)};
}

bool is_stem(const HalfConvolution& problem) { return refuses(problem).empty(); }

Variant<HalfConvolution> stem_variant() {
  return {.name = "conv:half_stem", .refuses = refuses, .workspace_bytes = workspace, .run = run};
}

}  // namespace gpunn::cuda_tiled
