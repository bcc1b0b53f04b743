// The forward pass y' of a stem convolution, as a matrix product. Rows are output pixels, columns 64 filters, and K the
// rows of taps one after another. Persistent blocks keep their filters in shared memory. A warp computes 32
// neighbouring pixels of a row.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "architecture.hpp"
#include "conv/stem/stem_tile.cuh"
#include "cuda_common/launch.hpp"
#include "epilogue.cuh"
#include "fragments.cuh"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {
namespace {

constexpr int kPiece = 16;                      // of K, and of a warp's pixels
constexpr int kPieces = kStemColumns / kPiece;  // of a warp's pixels
constexpr int kStagingPitch = kStemFilters + 8;
constexpr int kStagingNumbers = kStemRows * kPiece * kStagingPitch;
constexpr int kBlocksEach = 2;

struct StemForward {
  const uint16_t* x;
  const uint16_t* w;
  const float* bias;  // or NULL
  uint16_t* y;
  bool relu;
};

template <int kPixel>
__device__ __forceinline__ void load_filters(const StemForward& op, const Stem& z, int first, uint16_t* filters) {
  const int line = z.tap_columns * z.channels, pitch = z.filter_pitch();
  for (int row = static_cast<int>(threadIdx.x / 32); row < kStemFilters * z.tap_rows; row += kStemRows) {
    const int filter = row / z.tap_rows, tap_row = row - filter * z.tap_rows;
    const uint16_t* const from = op.w + (int64_t{first + filter} * z.tap_rows + tap_row) * line;
    for (int i = static_cast<int>(threadIdx.x % 32); i < z.line; i += 32) {
      const int tap = i / kPixel, channel = i % kPixel;
      const bool is_there = first + filter < z.filters && tap < z.tap_columns && channel < z.channels;
      filters[filter * pitch + tap_row * z.line + i] = is_there ? from[tap * z.channels + channel] : uint16_t{0};
    }
  }
}

template <class T, int kPixel>
__global__ void __launch_bounds__(kStemThreads, kBlocksEach) stem_forward(StemForward op, Stem z) {
  extern __shared__ float4 shared_memory[];
  const int filter_pitch = z.filter_pitch();
  auto* const filters = reinterpret_cast<uint16_t*>(shared_memory);
  uint16_t* const patch = filters + kStemFilters * filter_pitch;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  uint16_t* const staging = patch + z.patch_rows * z.patch_pitch + warp * kPiece * kStagingPitch;
  const int first_filter = static_cast<int>(blockIdx.y) * kStemFilters;
  load_filters<kPixel>(op, z, first_filter, filters);

  // What a lane names for ldmatrix: a row of a matrix, and which half of a piece of K.
  const int a_row = lane / 8 % 2 * 8 + lane % 8, a_half = lane / 16 * 8;
  const int b_row = lane / 16 * 8 + lane % 8, b_half = lane / 8 % 2 * 8;
  // What is behind the last tap of a row is another window's, and may be infinite.
  const uint32_t keep_low = lane % 4 * 2 < z.last ? ~0U : 0U, keep_high = 8 + lane % 4 * 2 < z.last ? ~0U : 0U;

  for (int tile_index = static_cast<int>(blockIdx.x); tile_index < z.tiles; tile_index += static_cast<int>(gridDim.x)) {
    const StemTile tile(z, tile_index);
    __syncthreads();
    load_patch<kPixel>(op.x, z, tile, patch);
    __syncthreads();
    if (tile.row + warp >= z.output_rows) continue;

    float sums[kPieces][kStemFilters / 8][4] = {};
    for (int tap_row = 0; tap_row < z.tap_rows; ++tap_row) {
      const uint16_t* const line = patch + (warp * z.row_stride + tap_row) * z.patch_pitch;
      const uint16_t* const of_filters = filters + b_row * filter_pitch + tap_row * z.line + b_half;
      for (int k = 0; k < z.line; k += kPiece) {
        uint32_t a[kPieces][4];
#pragma unroll
        for (int piece = 0; piece < kPieces; ++piece) {
          load_matrices<false>(a[piece], line + (piece * kPiece + a_row) * z.column_stride * kPixel + k + a_half);
        }
        if (k + kPiece == z.line) {
#pragma unroll
          for (int piece = 0; piece < kPieces; ++piece) {
            a[piece][0] &= keep_low;
            a[piece][1] &= keep_low;
            a[piece][2] &= keep_high;
            a[piece][3] &= keep_high;
          }
        }
#pragma unroll
        for (int pair = 0; pair < kStemFilters / 16; ++pair) {
          uint32_t b[4];
          load_matrices<false>(b, of_filters + pair * 16 * filter_pitch + k);
#pragma unroll
          for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              float(&d)[4] = sums[piece][pair * 2 + i];
              multiply_fragments<T>(d[0], d[1], d[2], d[3], a[piece], b[i * 2], b[i * 2 + 1]);
            }
          }
        }
      }
    }

#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
      for (int i = 0; i < kStemFilters / 8; ++i) {
        float(&d)[4] = sums[piece][i];
        const int at = i * 8 + lane % 4 * 2;
        if (op.bias != nullptr && first_filter + at < z.filters) {
          const float first = op.bias[first_filter + at], second = op.bias[first_filter + at + 1];
          d[0] += first;
          d[1] += second;
          d[2] += first;
          d[3] += second;
        }
#pragma unroll
        for (float& sum : d) sum = rectified(sum, op.relu);
        *reinterpret_cast<uint32_t*>(staging + lane / 4 * kStagingPitch + at) = packed<T>(d[0], d[1]);
        *reinterpret_cast<uint32_t*>(staging + (lane / 4 + 8) * kStagingPitch + at) = packed<T>(d[2], d[3]);
      }
      __syncwarp();
      constexpr int kChunks = kStemFilters / 8;  // of 16 bytes, of a pixel
#pragma unroll
      for (int i = 0; i < kPiece * kChunks / 32; ++i) {
        const int row = (i * 32 + lane) / kChunks, filter = lane % kChunks * 8;
        const int column = piece * kPiece + row;
        if (tile.column + column >= z.output_columns || first_filter + filter >= z.filters) continue;
        uint16_t* const to = op.y + tile.pixel(z, warp, column) * z.filters + first_filter + filter;
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(staging + row * kStagingPitch + filter);
      }
      __syncwarp();
    }
  }
}

}  // namespace

void run_stem_forward(const HalfConvolution& problem, const Stem& stem, const OpArgs& args, cudaStream_t stream) {
  const StemForward op{.x = args.in<uint16_t>(0),
                       .w = args.in<uint16_t>(1),
                       .bias = problem.bias ? args.in<float>(2) : nullptr,
                       .y = args.out<uint16_t>(0),
                       .relu = problem.relu};
  const auto kernel_of = [&]<class T>(T) { return stem.pixel == 4 ? stem_forward<T, 4> : stem_forward<T, 8>; };
  const auto kernel = problem.dtype == GPUNN_BF16 ? kernel_of(__nv_bfloat16()) : kernel_of(__half());
  const int numbers = kStemFilters * stem.filter_pitch() + stem.patch_rows * stem.patch_pitch + kStagingNumbers;
  const int blocks = std::min(stem.tiles, multiprocessors() * kBlocksEach);
  const cuda::Launch launch{dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(stem.filter_groups)),
                            dim3(kStemThreads), static_cast<unsigned>(numbers * sizeof(uint16_t))};
  allow_shared_memory(kernel, launch.shared_bytes);
  cuda::launch(kernel, launch, stream, op, stem);
}

}  // namespace gpunn::cuda_tiled
