// The weight gradient dw' of a stem convolution, as a matrix product. Rows are 64 filters, columns the rows of taps one
// after another, and K the output pixels. Persistent blocks walk over tiles of pixels with their sums in registers.
// Each warp has 16 filters and one half of the columns. At the end each block stores its sums in the workspace.
#include <algorithm>
#include <cstdint>

#include "architecture.hpp"
#include "conv/stem/stem_tile.cuh"
#include "cuda_common/launch.hpp"
#include "fragments.cuh"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {
namespace {

constexpr int kPiece = 16;  // of K: pixels
constexpr int kGradientPitch = kStemFilters + 8;
constexpr int kGradientNumbers = kStemRows * kStemColumns * kGradientPitch;
constexpr int kBlocksEach = 2;
constexpr int kFilterPieces = kStemFilters / 16;            // a warp each
constexpr int kHalves = kStemThreads / 32 / kFilterPieces;  // of the columns

// The gradients of the tile's pixels, zeros of those that are not there. All threads of the block.
__device__ __forceinline__ void load_gradients(const uint16_t* dy, const Stem& z, const StemTile& tile,
                                               int first_filter, uint16_t* gradients) {
  constexpr int kChunks = kStemFilters / 8;  // of 16 bytes, of a pixel
  constexpr int kEach = kStemRows * kStemColumns * kChunks / kStemThreads;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int at = i * kStemThreads + static_cast<int>(threadIdx.x);
    const int pixel = at / kChunks, filter = at % kChunks * 8;
    const int row = pixel / kStemColumns, column = pixel % kStemColumns;
    uint4 eight = make_uint4(0, 0, 0, 0);
    if (tile.row + row < z.output_rows && tile.column + column < z.output_columns && first_filter + filter < z.filters)
      eight = *reinterpret_cast<const uint4*>(dy + tile.pixel(z, row, column) * z.filters + first_filter + filter);
    *reinterpret_cast<uint4*>(gradients + pixel * kGradientPitch + filter) = eight;
  }
}

// kMatrices: of eight columns, of a warp, at most.
template <class T, int kPixel, int kMatrices>
__global__ void __launch_bounds__(kStemThreads, kBlocksEach)
    stem_backward_filter(const uint16_t* dy, const uint16_t* x, float* parts, Stem z) {
  extern __shared__ float4 shared_memory[];
  auto* const gradients = reinterpret_cast<uint16_t*>(shared_memory);
  uint16_t* const patch = gradients + kGradientNumbers;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int filter_piece = warp % kFilterPieces, first_matrix = warp / kFilterPieces * kMatrices;
  const int first_filter = static_cast<int>(blockIdx.y) * kStemFilters;
  const int columns = z.sums();

  // What a lane names for ldmatrix. Both operands lie with their pixels as rows, and are transposed.
  const int a_pixel = lane / 16 * 8 + lane % 8, a_filter = filter_piece * 16 + lane / 8 % 2 * 8;
  const int b_pixel = lane / 8 % 2 * 8 + lane % 8, b_half = lane / 16 * 8;
  int place[kMatrices / 2];  // of a pair of matrices in the patch
#pragma unroll
  for (int pair = 0; pair < kMatrices / 2; ++pair) {
    const int column = min((first_matrix + pair * 2) * 8, columns - 16);  // beyond the last: not stored
    const int tap_row = column / z.line;
    place[pair] = tap_row * z.patch_pitch + column - tap_row * z.line + b_half + b_pixel * z.column_stride * kPixel;
  }

  float sums[kMatrices][4] = {};
  for (int tile_index = static_cast<int>(blockIdx.x); tile_index < z.tiles; tile_index += static_cast<int>(gridDim.x)) {
    const StemTile tile(z, tile_index);
    __syncthreads();
    load_gradients(dy, z, tile, first_filter, gradients);
    load_patch<kPixel>(x, z, tile, patch);
    __syncthreads();
    const int rows = min(kStemRows, z.output_rows - tile.row);
    for (int row = 0; row < rows; ++row) {
#pragma unroll
      for (int column = 0; column < kStemColumns; column += kPiece) {
        uint32_t a[4];
        load_matrices<true>(a, gradients + (row * kStemColumns + column + a_pixel) * kGradientPitch + a_filter);
        const uint16_t* const windows = patch + row * z.row_stride * z.patch_pitch + column * z.column_stride * kPixel;
#pragma unroll
        for (int pair = 0; pair < kMatrices / 2; ++pair) {
          uint32_t b[4];
          load_matrices<true>(b, windows + place[pair]);
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            float(&d)[4] = sums[pair * 2 + i];
            multiply_fragments<T>(d[0], d[1], d[2], d[3], a, b[i * 2], b[i * 2 + 1]);
          }
        }
      }
    }
  }

  float* const part = parts + (int64_t{blockIdx.x} * gridDim.y + blockIdx.y) * kStemFilters * columns;
#pragma unroll
  for (int i = 0; i < kMatrices; ++i) {
    const int column = (first_matrix + i) * 8 + lane % 4 * 2, filter = filter_piece * 16 + lane / 4;
    if ((first_matrix + i) * 8 >= columns) continue;
    *reinterpret_cast<float2*>(part + filter * columns + column) = make_float2(sums[i][0], sums[i][1]);
    *reinterpret_cast<float2*>(part + (filter + 8) * columns + column) = make_float2(sums[i][2], sums[i][3]);
  }
}

constexpr int kSumElements = 32;                        // of dw, of a block
constexpr int kSlices = cuda::kThreads / kSumElements;  // of the parts, a warp each

// dw = the sum of the parts: each warp adds up a slice of them, and one the slices.
template <class T>
__global__ void __launch_bounds__(cuda::kThreads)
    add_stem_parts(const float* parts, T* dw, Stem z, int count, int elements) {
  __shared__ float slices[kSlices][kSumElements];
  const int of_block = static_cast<int>(threadIdx.x % kSumElements),
            slice = static_cast<int>(threadIdx.x / kSumElements);
  const int element = static_cast<int>(blockIdx.x) * kSumElements + of_block;
  const int columns = z.sums(), groups = z.filter_groups;
  float sum = 0.0F;
  if (element < elements) {
    const int taps = z.tap_columns * z.channels;
    const int row = element / taps, within = element - row * taps;  // of all filters' rows of taps
    const int filter = row / z.tap_rows, tap_row = row - filter * z.tap_rows;
    const int tap = within / z.channels, channel = within - tap * z.channels;
    const int64_t place = int64_t{filter} * columns + tap_row * z.line + tap * z.pixel + channel;
    const int64_t pitch = int64_t{groups} * kStemFilters * columns;
    const int each = (count + kSlices - 1) / kSlices;
#pragma unroll 8
    for (int i = slice * each; i < min((slice + 1) * each, count); ++i) sum += parts[i * pitch + place];
  }
  slices[slice][of_block] = sum;
  __syncthreads();
  if (slice > 0 || element >= elements) return;
  for (int i = 1; i < kSlices; ++i) sum += slices[i][of_block];
  dw[element] = static_cast<T>(sum);
}

int blocks_of(const Stem& stem) { return std::min(stem.tiles, multiprocessors() * kBlocksEach); }

template <class T>
void run(const Stem& stem, const OpArgs& args, cudaStream_t stream) {
  constexpr int kFew = 8, kMany = 16;  // matrices of a warp
  const bool few = stem.sums() <= kFew * kHalves * 8;
  const auto kernel = stem.pixel == 4 ? (few ? stem_backward_filter<T, 4, kFew> : stem_backward_filter<T, 4, kMany>)
                                      : (few ? stem_backward_filter<T, 8, kFew> : stem_backward_filter<T, 8, kMany>);
  const int blocks = blocks_of(stem);
  const int numbers = kGradientNumbers + stem.patch_rows * stem.patch_pitch;
  const cuda::Launch launch{dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(stem.filter_groups)),
                            dim3(kStemThreads), static_cast<unsigned>(numbers * sizeof(uint16_t))};
  allow_shared_memory(kernel, launch.shared_bytes);
  cuda::launch(kernel, launch, stream, args.in<uint16_t>(0), args.in<uint16_t>(1), args.workspace<float>(), stem);
  const int elements = stem.filters * stem.tap_rows * stem.tap_columns * stem.channels;
  cuda::launch(add_stem_parts<T>, {dim3(cuda::grid_size(elements, kSumElements)), dim3(cuda::kThreads)}, stream,
               args.workspace<float>(), args.out<T>(0), stem, blocks, elements);
}

}  // namespace

uint64_t stem_workspace(const Stem& stem) {
  return static_cast<uint64_t>(blocks_of(stem)) * static_cast<uint64_t>(stem.filter_groups) * kStemFilters *
         static_cast<uint64_t>(stem.sums()) * sizeof(float);
}

void run_stem_backward_filter(const HalfConvolution& problem, const Stem& stem, const OpArgs& args,
                              cudaStream_t stream) {
  problem.dtype == GPUNN_BF16 ? run<__nv_bfloat16>(stem, args, stream) : run<__half>(stem, args, stream);
}

}  // namespace gpunn::cuda_tiled
