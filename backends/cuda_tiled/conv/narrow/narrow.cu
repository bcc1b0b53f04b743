// conv:half_narrow: the forward pass of convolutions with up to 32 filters, on tensor cores. A product of tiles 64
// filters wide would be mostly empty, and would fetch each pixel once for every tap. Here a thread block holds the
// pixels of its windows in shared memory once, and its filters as long as it runs. Rows of the product are output
// pixels: a warp computes 32 neighbours of a row. Columns are filters. K runs through the taps, 16 channels at a time.
// ldmatrix reads 16 neighbouring pixels of the patch as rows of a matrix, for any tap.
#include <algorithm>
#include <cstdint>
#include <limits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "architecture.hpp"
#include "async_copy.cuh"
#include "conv/narrow/narrow.hpp"
#include "cuda_common/divide_up.hpp"
#include "cuda_common/launch.hpp"
#include "divider.cuh"
#include "epilogue.cuh"
#include "fragments.cuh"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::ConvolutionAxis;
using backends::Refusal;
using backends::require;
using cuda::divide_up;

constexpr int kRows = 8, kColumns = 32;  // output pixels of a block; a warp a row
constexpr int kThreads = 32 * kRows;
constexpr int kNarrowPiece = 16;                        // of K, and of a warp's pixels
constexpr int kNarrowPieces = kColumns / kNarrowPiece;  // of a warp's pixels
constexpr int kChunk = 8;                               // numbers of 16 bits that are copied at a time
constexpr int kSkew = 8;  // numbers behind a pixel and a filter, so that neighbours begin at other banks
constexpr int kNarrowBlocksEach = 2;
constexpr int64_t kMostShared = 110 << 10;
constexpr int64_t kMostChannels = 64, kMostFilters = 32;
constexpr int kAmpere = 80;

// Numbers are of 16 bits.
struct Narrow {
  int channels = 0, filters = 0;
  int input_rows = 0, input_columns = 0, output_rows = 0, output_columns = 0;
  int tap_rows = 0, tap_columns = 0;
  int row_stride = 1, column_stride = 1, row_pad = 0, column_pad = 0, row_dilation = 1, column_dilation = 1;
  int filter_tiles = 1;  // of 8 filters: 1, 2 or 4
  int patch_rows = 0, patch_columns = 0;
  int tiles = 0;
  Divider by_tile_columns, by_tile_rows;  // a tile's place: image, row and column
  Divider by_chunks, by_patch_columns;    // of a pixel; of a row of the patch

  constexpr int pixel_pitch() const { return channels + kSkew; }
  constexpr int terms() const { return tap_rows * tap_columns * channels; }
  constexpr int filter_pitch() const { return terms() + kSkew; }
  constexpr int filter_numbers() const { return filter_tiles * 8 * filter_pitch(); }
  constexpr int64_t shared_bytes() const {
    const int64_t patch = int64_t{patch_rows} * patch_columns * pixel_pitch();
    return (patch + filter_numbers()) * static_cast<int64_t>(sizeof(uint16_t));
  }
};

int pixels_seen(const ConvolutionAxis& axis, int outputs) {
  return static_cast<int>((outputs - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1);
}

// Throws Refusal.
Narrow narrow_of(const HalfConvolution& problem) {
  const backends::ConvolutionShape& shape = problem.shape;
  const ConvolutionAxis &rows = shape.rows, &columns = shape.columns;
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  require(problem.pass == backends::ConvolutionPass::forward, "is for forward passes");
  require(!problem.residual, "has no residual to add");
  require(shape.groups == 1 && shape.group_inputs % kNarrowPiece == 0 && shape.group_inputs <= kMostChannels,
          "is for images of 16, 32, 48 or 64 channels in one group");
  require(shape.group_outputs <= kMostFilters, "is for up to 32 filters");
  require(compute_capability() >= kAmpere, "the GPU is of a compute capability below 8.0");
  require(rows.taps * columns.taps * shape.group_inputs * kMostFilters <= kMostShared &&
              (kColumns * columns.stride + columns.taps * columns.dilation) <= kMostShared &&
              (kRows * rows.stride + rows.taps * rows.dilation) <= kMostShared / kColumns,
          "its filters and windows don't fit into shared memory");
  const int64_t tile_columns = divide_up(columns.outputs, int64_t{kColumns});
  const int64_t tile_rows = divide_up(rows.outputs, int64_t{kRows});
  const int64_t tiles = shape.batch * tile_rows * tile_columns;
  require(tiles <= kMost && rows.inputs * columns.inputs * kMostChannels <= kMost, "a tensor is too large");
  Narrow z;
  z.channels = static_cast<int>(shape.group_inputs);
  z.filters = static_cast<int>(shape.group_outputs);
  z.input_rows = static_cast<int>(rows.inputs);
  z.input_columns = static_cast<int>(columns.inputs);
  z.output_rows = static_cast<int>(rows.outputs);
  z.output_columns = static_cast<int>(columns.outputs);
  z.tap_rows = static_cast<int>(rows.taps);
  z.tap_columns = static_cast<int>(columns.taps);
  z.row_stride = static_cast<int>(rows.stride);
  z.column_stride = static_cast<int>(columns.stride);
  z.row_pad = static_cast<int>(rows.pad);
  z.column_pad = static_cast<int>(columns.pad);
  z.row_dilation = static_cast<int>(rows.dilation);
  z.column_dilation = static_cast<int>(columns.dilation);
  z.filter_tiles = z.filters <= 8 ? 1 : z.filters <= 16 ? 2 : 4;
  z.patch_rows = pixels_seen(rows, kRows);
  z.patch_columns = pixels_seen(columns, kColumns);
  z.tiles = static_cast<int>(tiles);
  z.by_tile_columns = Divider(tile_columns);
  z.by_tile_rows = Divider(tile_rows);
  z.by_chunks = Divider(z.channels / kChunk);
  z.by_patch_columns = Divider(z.patch_columns);
  require(z.shared_bytes() <= kMostShared, "its filters and windows don't fit into shared memory");
  return z;
}

std::string refuses(const HalfConvolution& problem) {
  try {
    narrow_of(problem);
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return {};
}

struct NarrowForward {
  const uint16_t* x;
  const uint16_t* w;
  const float* bias;  // or NULL
  uint16_t* y;
  bool relu;
};

__device__ __forceinline__ void copy_chunk(uint16_t* to, const uint16_t* from, bool valid) {
  copy_async<kChunk * sizeof(uint16_t)>(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(from), valid);
}

// Zeros in the place of filters that are not there.
__device__ __forceinline__ void load_filters(const NarrowForward& op, const Narrow& z, uint16_t* filters) {
  for (int filter = static_cast<int>(threadIdx.x / 32); filter < z.filter_tiles * 8; filter += kRows) {
    const bool is_there = filter < z.filters;
    const uint16_t* const from = op.w + int64_t{is_there ? filter : 0} * z.terms();
    for (int i = static_cast<int>(threadIdx.x % 32) * kChunk; i < z.terms(); i += 32 * kChunk) {
      copy_chunk(filters + filter * z.filter_pitch() + i, from + i, is_there);
    }
  }
}

// The pixels that windows of the tile see, with zeros for the padding.
__device__ __forceinline__ void load_patch(const uint16_t* x, const Narrow& z, int image, int row, int column,
                                           uint16_t* patch) {
  const uint16_t* const from_image = x + int64_t{image} * z.input_rows * z.input_columns * z.channels;
  const int first_row = row * z.row_stride - z.row_pad, first_column = column * z.column_stride - z.column_pad;
  const int chunks = z.patch_rows * z.patch_columns * static_cast<int>(z.by_chunks.by);
  for (int i = static_cast<int>(threadIdx.x); i < chunks; i += kThreads) {
    const auto [pixel, chunk] = z.by_chunks(i);
    const auto [patch_row, patch_column] = z.by_patch_columns(pixel);
    const int from_row = first_row + patch_row, from_column = first_column + patch_column;
    const bool is_there = from_row >= 0 && from_row < z.input_rows && from_column >= 0 && from_column < z.input_columns;
    const int at = is_there ? (from_row * z.input_columns + from_column) * z.channels + chunk * kChunk : 0;
    copy_chunk(patch + pixel * z.pixel_pitch() + chunk * kChunk, from_image + at, is_there);
  }
}

// Two neighbouring filters of a pixel, of which the second need not be there.
template <class T>
__device__ __forceinline__ void store_pair(const NarrowForward& op, const Narrow& z, int64_t pixel, int filter,
                                           float first, float second) {
  if (filter >= z.filters) return;
  const bool both = filter + 1 < z.filters;
  if (op.bias != nullptr) {
    first += op.bias[filter];
    second += both ? op.bias[filter + 1] : 0.0F;
  }
  const uint32_t pair = packed<T>(rectified(first, op.relu), rectified(second, op.relu));
  uint16_t* const to = op.y + pixel * z.filters + filter;
  if (z.filters % 2 == 0) {
    *reinterpret_cast<uint32_t*>(to) = pair;
  } else {
    to[0] = static_cast<uint16_t>(pair);
    if (both) to[1] = static_cast<uint16_t>(pair >> 16U);
  }
}

template <class T, int kTiles>
__global__ void __launch_bounds__(kThreads, kNarrowBlocksEach) narrow_forward(NarrowForward op, Narrow z) {
  extern __shared__ float4 shared_memory[];
  auto* const filters = reinterpret_cast<uint16_t*>(shared_memory);
  uint16_t* const patch = filters + z.filter_numbers();
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int pixel_pitch = z.pixel_pitch(), filter_pitch = z.filter_pitch();
  load_filters(op, z, filters);

  // What a lane names for ldmatrix: a row of a matrix, and which half of a piece of K. Of 8 filters there are no more.
  const int a_row = lane / 8 % 2 * 8 + lane % 8, a_half = lane / 16 * 8;
  const int b_row = (kTiles == 1 ? 0 : lane / 16 * 8) + lane % 8, b_half = lane / 8 % 2 * 8;

  for (int tile = static_cast<int>(blockIdx.x); tile < z.tiles; tile += static_cast<int>(gridDim.x)) {
    const auto [line, tile_column] = z.by_tile_columns(tile);
    const auto [image, tile_row] = z.by_tile_rows(line);
    const int row = tile_row * kRows, column = tile_column * kColumns;
    __syncthreads();  // all are done with the patch before
    load_patch(op.x, z, image, row, column, patch);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    if (row + warp >= z.output_rows) continue;

    float sums[kNarrowPieces][kTiles][4] = {};
    const uint16_t* const of_row =
        patch + (warp * z.row_stride * z.patch_columns + a_row * z.column_stride) * pixel_pitch + a_half;
    const uint16_t* of_filters = filters + b_row * filter_pitch + b_half;
    for (int tap_row = 0; tap_row < z.tap_rows; ++tap_row) {
      for (int tap_column = 0; tap_column < z.tap_columns; ++tap_column) {
        const int tap = tap_row * z.row_dilation * z.patch_columns + tap_column * z.column_dilation;
        const uint16_t* const of_tap = of_row + tap * pixel_pitch;
        for (int k = 0; k < z.channels; k += kNarrowPiece, of_filters += kNarrowPiece) {
          uint32_t a[kNarrowPieces][4];
#pragma unroll
          for (int piece = 0; piece < kNarrowPieces; ++piece) {
            load_matrices<false>(a[piece], of_tap + piece * kNarrowPiece * z.column_stride * pixel_pitch + k);
          }
#pragma unroll
          for (int pair = 0; pair < (kTiles + 1) / 2; ++pair) {
            uint32_t b[4];
            load_matrices<false>(b, of_filters + pair * 16 * filter_pitch);
#pragma unroll
            for (int piece = 0; piece < kNarrowPieces; ++piece) {
#pragma unroll
              for (int i = 0; i < (kTiles == 1 ? 1 : 2); ++i) {
                float(&d)[4] = sums[piece][pair * 2 + i];
                multiply_fragments<T>(d[0], d[1], d[2], d[3], a[piece], b[i * 2], b[i * 2 + 1]);
              }
            }
          }
        }
      }
    }

    const int64_t first_pixel = (int64_t{image} * z.output_rows + row + warp) * z.output_columns + column;
#pragma unroll
    for (int piece = 0; piece < kNarrowPieces; ++piece) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = piece * kNarrowPiece + half * 8 + lane / 4;
        if (column + at >= z.output_columns) continue;
#pragma unroll
        for (int i = 0; i < kTiles; ++i) {
          const float(&d)[4] = sums[piece][i];
          store_pair<T>(op, z, first_pixel + at, i * 8 + lane % 4 * 2, d[half * 2], d[half * 2 + 1]);
        }
      }
    }
  }
}

template <class T>
auto kernel_of(const Narrow& z) {
  if (z.filter_tiles == 1) return narrow_forward<T, 1>;
  return z.filter_tiles == 2 ? narrow_forward<T, 2> : narrow_forward<T, 4>;
}

void run(const HalfConvolution& problem, cudaStream_t stream, const OpArgs& args) {
  const Narrow z = narrow_of(problem);
  const NarrowForward op{.x = args.in<uint16_t>(0),
                         .w = args.in<uint16_t>(1),
                         .bias = problem.bias ? args.in<float>(2) : nullptr,
                         .y = args.out<uint16_t>(0),
                         .relu = problem.relu};
  const auto kernel = problem.dtype == GPUNN_BF16 ? kernel_of<__nv_bfloat16>(z) : kernel_of<__half>(z);
  const int blocks = std::min(z.tiles, multiprocessors() * kNarrowBlocksEach);
  const cuda::Launch launch{dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                            static_cast<unsigned>(z.shared_bytes())};
  allow_shared_memory(kernel, launch.shared_bytes);
  cuda::launch(kernel, launch, stream, op, z);
}

}  // namespace

Variant<HalfConvolution> narrow_variant() { return {.name = "conv:half_narrow", .refuses = refuses, .run = run}; }

}  // namespace gpunn::cuda_tiled
