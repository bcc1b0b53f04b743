// quantized:stem: convolution in eight bits of images of up to four channels, as at the beginning of networks, on
// tensor cores (mma.sync). A block holds a tile's patch (quantized_patch.hpp) in shared memory, each pixel in a word of
// four bytes. K consists of taps, four bytes each, so a word of an operand's fragment is a pixel, which a lane loads
// from the patch directly. The block keeps the filters and goes from tile to tile.
#include <algorithm>
#include <cstdint>

#include "cuda_common/launch.hpp"
#include "dependent_launch.cuh"
#include "launch.hpp"
#include "quantized/quantized_kernel.cuh"
#include "quantized/quantized_patch.cuh"
#include "quantized/quantized_stem.hpp"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {
namespace {

constexpr int kStemChannels = 4;  // bytes of a pixel in a patch
constexpr int kStepTaps = 8;      // of a product of tensor cores

struct QuantizedStemTile {
  static constexpr int kTileM = 256, kTileN = 64, kThreads = 256;
  static constexpr int kWarpM = 32;  // pixels, with all filters
  static constexpr int kFragmentsM = kWarpM / 16, kFragmentsN = kTileN / 8;
  static constexpr int kPitch = kTileN + kChunkBytes;
  static constexpr int kBlocks = 2;  // that share a multiprocessor
};

// Bytes of a filter. The chunk more lets eight rows that ldmatrix reads meet all banks.
__host__ __device__ constexpr int filter_pitch(int steps) { return steps * kStepTaps * kStemChannels + kChunkBytes; }

__device__ __forceinline__ uint32_t load_pixel(const uint8_t* from, int channels) {
  uint32_t pixel = 0;
  for (int c = 0; c < channels; ++c) pixel |= uint32_t{from[c]} << (8 * c);
  return pixel;
}

__device__ __forceinline__ int32_t add_signed(uint32_t four, int32_t sum) {
  int32_t result = sum;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(four), "r"(0x01010101), "r"(sum));
  return result;
}

__global__ void __launch_bounds__(QuantizedStemTile::kThreads, QuantizedStemTile::kBlocks)
    quantized_stem(const __grid_constant__ QuantizedArguments a, const __grid_constant__ QuantizedStemPlan plan) {
  using T = QuantizedStemTile;
  constexpr uint32_t kHighestBits = 0x80808080U;  // filters have the zero point 128
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ QuantizedColumns<T> columns;
  const QuantizedPatch& patch = plan.patch;
  const int pitch = filter_pitch(plan.steps), words = plan.steps * kStepTaps;
  uint8_t* const results = shared;
  uint8_t* const filters = results + T::kTileM * T::kPitch;
  int* const offsets = reinterpret_cast<int*>(filters + T::kTileN * pitch);  // of taps in the patch
  uint32_t* const pixels = reinterpret_cast<uint32_t*>(offsets + words);

  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int tiles_n = (a.outputs + T::kTileN - 1) / T::kTileN;
  const int first_filter = static_cast<int>(blockIdx.x) % tiles_n * T::kTileN;
  wait_for_kernel_before();
  let_next_kernel_start();
  for (int i = thread; i < words; i += T::kThreads) {
    const int row = i / a.taps_in_row, column = i - row * a.taps_in_row;
    const int offset = row * a.row_dilation * static_cast<int>(patch.pitch.by) + column * a.column_dilation;
    offsets[i] = i < patch.taps ? offset : 0;
  }
  for (int i = thread; i < T::kTileN * words; i += T::kThreads) {
    const int filter = i / words, tap = i - filter * words;
    uint32_t word = 0;
    if (first_filter + filter < a.outputs && tap < patch.taps) {
      const uint8_t* const from = a.w + int64_t{first_filter + filter} * a.terms + tap * a.channels;
      word = (load_pixel(from, a.channels) ^ kHighestBits) & (0xFFFFFFFFU >> (32 - 8 * a.channels));
    }
    *reinterpret_cast<uint32_t*>(filters + filter * pitch + tap * kStemChannels) = word;
  }
  const bool mine_strange = columns.fill(a, first_filter);
  const bool strange = __syncthreads_or(mine_strange ? 1 : 0) != 0;
  // The padding counts as the zero point, so that all sums have the same excess.
  if (thread < T::kTileN) {
    int32_t sum = 0;
    for (int i = 0; i < words; ++i) {
      sum = add_signed(*reinterpret_cast<const uint32_t*>(filters + thread * pitch + i * kStemChannels), sum);
    }
    columns.first[thread] = -static_cast<int32_t>(a.x_zero_point) * sum;
  }
  const uint32_t padding = a.x_zero_point * 0x01010101U;

  const int m = thread / 32 * T::kWarpM;
  const uint8_t* const from_filters = filters + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * kChunkBytes;
  const int tiles_m = (a.pixels + T::kTileM - 1) / T::kTileM;
  for (int tile = static_cast<int>(blockIdx.x) / tiles_n; tile < tiles_m;
       tile += static_cast<int>(gridDim.x) / tiles_n) {
    const int first_pixel = tile * T::kTileM;
    const int first_row = virtual_row_of(patch, place_of_output(a, first_pixel));
    for (int i = thread; i < patch.pixels; i += T::kThreads) {
      const int source = source_of(a, patch, first_pixel, first_row, i);
      pixels[i] = source >= 0 ? load_pixel(a.x + int64_t{source} * a.channels, a.channels) : padding;
    }
    __syncthreads();
    const uint32_t* row[T::kFragmentsM][2];
#pragma unroll
    for (int i = 0; i < T::kFragmentsM; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int of_tile = m + i * 16 + half * 8 + lane / 4;
        row[i][half] = pixels + place_in_patch(a, patch, first_pixel, first_row, of_tile);
      }
    }
    QuantizedSums<T> sums = {};
    for (int step = 0; step < plan.steps; ++step) {
      const int low = offsets[step * kStepTaps + lane % 4], high = offsets[step * kStepTaps + 4 + lane % 4];
      uint32_t x[T::kFragmentsM][4], w[T::kFragmentsN / 2][4];
#pragma unroll
      for (int i = 0; i < T::kFragmentsM; ++i) {
        x[i][0] = row[i][0][low];
        x[i][1] = row[i][1][low];
        x[i][2] = row[i][0][high];
        x[i][3] = row[i][1][high];
      }
#pragma unroll
      for (int j = 0; j < T::kFragmentsN / 2; ++j) {
        load_matrices<false>(w[j], from_filters + j * 16 * pitch + step * 2 * kChunkBytes);
      }
#pragma unroll
      for (int i = 0; i < T::kFragmentsM; ++i) {
#pragma unroll
        for (int j = 0; j < T::kFragmentsN; ++j) {
          multiply_bytes(sums[i][j], x[i], w[j / 2][j % 2 * 2], w[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
    store_sums<T>(a, strange, sums, columns, results, m, 0);
    __syncthreads();  // the results are there, and all are done with the patch
    write_results<T>(a, results, first_pixel, first_filter);
  }
}

}  // namespace

std::optional<QuantizedStemPlan> quantized_stem_plan(const backends::ConvolutionShape& shape) {
  using T = QuantizedStemTile;
  constexpr int kMostShared = 110 * 1024;  // half of a multiprocessor's
  const std::optional<QuantizedPatch> patch = quantized_patch(shape, T::kTileM);
  if (!patch || shape.groups != 1 || shape.group_inputs > kStemChannels || patch->pointwise) return std::nullopt;
  QuantizedStemPlan plan{.patch = *patch};
  plan.steps = cuda::divide_up(patch->taps, kStepTaps);
  const int64_t bytes = int64_t{T::kTileM} * T::kPitch + int64_t{T::kTileN} * filter_pitch(plan.steps) +
                        (int64_t{plan.steps} * kStepTaps + patch->pixels) * int64_t{sizeof(int)};
  if (bytes > kMostShared) return std::nullopt;
  plan.shared_bytes = static_cast<int>(bytes);
  return plan;
}

void launch_quantized_stem(const QuantizedStemPlan& plan, const QuantizedArguments& arguments, int multiprocessors,
                           cudaStream_t stream) {
  using T = QuantizedStemTile;
  allow_shared_memory(quantized_stem, static_cast<std::size_t>(plan.shared_bytes));
  const int tiles_m = cuda::divide_up(arguments.pixels, T::kTileM),
            tiles_n = cuda::divide_up(arguments.outputs, T::kTileN);
  const int rows = std::min(tiles_m, std::max(1, multiprocessors * T::kBlocks / tiles_n));
  const cuda::Launch shape{
      .grid = dim3(static_cast<unsigned>(rows * tiles_n)),
      .block = dim3(T::kThreads),
      .shared_bytes = static_cast<unsigned>(plan.shared_bytes),
  };
  launch_with(quantized_stem, shape, {.early = true}, stream, arguments, plan);
}

}  // namespace gpunn::cuda_tiled
