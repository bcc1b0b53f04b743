// quantized:128x128 and its siblings: convolution in eight bits as an implicit GEMM on tensor cores (mma.sync, from
// sm_80 on). A row of A is a pixel of y. Along K lie the channels of the first tap, then those of the second, and so
// on. In a channels-last image 16 bytes of a row are therefore 16 neighbouring channels of one pixel of x. B has one
// filter a row, with K along memory as well.
//
// Asynchronous copies of 16 bytes bring the tiles to shared memory, some stages ahead. There the 16-byte chunks are
// swizzled, so that the eight rows that ldmatrix reads at a time lie in different banks. A warp multiplies 16 x 8 x 32
// in one instruction, u8 by s8, with exact sums in s32. Filters are stored with the zero point 128: flipping the
// highest bit of each byte makes them s8.
//
// If x has a zero point z, then sum (x - z) w = sum x w - z sum w. The subtracted term is known in advance (`first`) if
// the padding counts as z. So a tap outside the image copies 16 bytes of z. For z = 0, as behind every ReLU, the copies
// fill in zeros themselves and nothing is prepared.
//
// The results return through shared memory, where the residual was loaded first, so that both are read and written 16
// bytes a thread. The residual is copied together with the first tiles, so that products of few terms wait for memory
// only once.
//
// If groups have another number of channels, 16 bytes of a row may span several taps. The threads then gather the bytes
// one by one, without asynchronous copies (kGather).
#pragma once

#include <algorithm>
#include <cstdint>

#include "async_copy.cuh"
#include "cuda_common/launch.hpp"
#include "dependent_launch.cuh"
#include "fragments.cuh"
#include "launch.hpp"
#include "quantized/quantized_convolution.hpp"
#include "quantized/quantized_store.cuh"
#include "shared_memory.hpp"

namespace gpunn::cuda_tiled {

template <QuantizedTile tile>
struct QuantizedTiling {
  static constexpr int kTileM = tile.tile_m, kTileN = tile.tile_n, kTileK = tile.tile_k;
  static constexpr int kWarpM = tile.warp_m, kWarpN = tile.warp_n;
  static constexpr int kStages = tile.stages;
  static constexpr int kWarpsN = kTileN / kWarpN;
  static constexpr int kThreads = 32 * (kTileM / kWarpM) * kWarpsN;
  static constexpr int kFragmentsM = kWarpM / 16, kFragmentsN = kWarpN / 8;
  static constexpr int kChunks = kTileK / kChunkBytes;  // of a row
  static constexpr int kRowStep = kThreads / kChunks;   // a thread has the same chunk of rows that lie so far apart
  static constexpr int kRowsA = kTileM / kRowStep, kRowsB = kTileN / kRowStep;
  static constexpr int kBytesA = kTileM * kTileK, kStageBytes = (kTileM + kTileN) * kTileK;
  static constexpr int kPitch = kTileN + kChunkBytes;  // of a pixel's results
  static constexpr int kStagesBytes = kStages * kStageBytes, kResultBytes = kTileM * kPitch;
  // Results take the place of the stages, or lie behind them where the residual comes early.
  static constexpr int kSharedBytes = std::max(kStagesBytes, kResultBytes);
  static constexpr int kResidualSharedBytes = kStagesBytes + kResultBytes;
  static constexpr int kBlocks = kWarpM * kWarpN > 2048 ? 1 : 2;  // that a multiprocessor has registers for
  static_assert(kChunks == 4 || kChunks == 8);
  static_assert(kTileM % kRowStep == 0 && kTileN % kRowStep == 0 && kFragmentsN % 2 == 0 && kRowStep % 8 == 0);

  // Of a chunk in a tile. Eight rows below one another meet all banks. Rows that are a multiple of 8 apart have their
  // chunks at the same places.
  __device__ __forceinline__ static int place(int row, int chunk) {
    const int swizzled = chunk ^ (kChunks == 8 ? row & 7 : row >> 1 & 3);
    return row * kTileK + swizzled * kChunkBytes;
  }
};

// The position of a term of the sums: its channel and its tap.
struct QuantizedTerm {
  int channel, tap_row, tap_column;

  __device__ __forceinline__ QuantizedTerm(int term, const QuantizedArguments& a)
      : channel(term % a.group_channels),
        tap_row(term / a.group_channels / a.taps_in_row),
        tap_column(term / a.group_channels % a.taps_in_row) {}
  __device__ __forceinline__ void advance(int terms, const QuantizedArguments& a) {
    channel += terms;
    while (channel >= a.group_channels) {
      channel -= a.group_channels;
      if (++tap_column < a.taps_in_row) continue;
      tap_column = 0;
      ++tap_row;
    }
  }
};

// The rows of A and B of which a thread copies its chunk.
template <class T>
class QuantizedRows {
 public:
  __device__ __forceinline__ QuantizedRows(const QuantizedArguments& a, int first_pixel, int first_filter)
      : chunk_(static_cast<int>(threadIdx.x) % T::kChunks) {
    const int first = static_cast<int>(threadIdx.x) / T::kChunks;
    place_ = T::place(first, chunk_);
    const int group = static_cast<int>(blockIdx.y);
#pragma unroll
    for (int i = 0; i < T::kRowsA; ++i) {
      const int pixel = first_pixel + first + i * T::kRowStep;
      const Divider::Result image = a.output_image(pixel);
      const Divider::Result at = a.output_columns(image.rest);
      constexpr int kOutside = -(1 << 30);
      top_[i] = pixel < a.pixels ? at.quotient * a.row_stride - a.row_pad : kOutside;
      left_[i] = at.rest * a.column_stride - a.column_pad;
      const int64_t row = int64_t{image.quotient} * a.rows + top_[i];
      corner_[i] = a.x + (row * a.columns + left_[i]) * a.channels + group * a.group_channels;
    }
    filters_ = a.outputs - first_filter - first;
    filter_ = a.w + (int64_t{group} * a.outputs + first_filter + first) * a.terms;
  }

  // Starts copying the thread's chunks, which begin at `term`, into a stage.
  __device__ __forceinline__ void copy(const QuantizedArguments& a, int term, const QuantizedTerm& at,
                                       uint8_t* stage) const {
    const bool inside = term < a.terms;
    const int down = at.tap_row * a.row_dilation, right = at.tap_column * a.column_dilation;
    const int64_t offset = (int64_t{down} * a.columns + right) * a.channels + at.channel;
#pragma unroll
    for (int i = 0; i < T::kRowsA; ++i) {
      const bool there = is_pixel(a, i, down, right);
      const uint8_t* const from = there ? corner_[i] + offset : a.padding;
      copy_chunk(stage + place_ + i * kStepBytes, from, inside && from != nullptr);
    }
#pragma unroll
    for (int i = 0; i < T::kRowsB; ++i) {
      const bool there = inside && i * T::kRowStep < filters_;
      copy_chunk(stage + T::kBytesA + place_ + i * kStepBytes, filter(a, i) + term, there);
    }
  }

  // The same, byte by byte, done at the end.
  __device__ __forceinline__ void gather(const QuantizedArguments& a, int term, uint8_t* stage) const {
    uint32_t pixels[T::kRowsA][4] = {}, filters[T::kRowsB][4] = {};
    QuantizedTerm at(term, a);
#pragma unroll
    for (int byte = 0; byte < kChunkBytes; ++byte) {
      if (term + byte < a.terms) {
        const int down = at.tap_row * a.row_dilation, right = at.tap_column * a.column_dilation;
        const int64_t offset = (int64_t{down} * a.columns + right) * a.channels + at.channel;
#pragma unroll
        for (int i = 0; i < T::kRowsA; ++i) {
          const uint32_t value = is_pixel(a, i, down, right) ? corner_[i][offset] : a.x_zero_point;
          pixels[i][byte / 4] |= value << (byte % 4 * 8);
        }
#pragma unroll
        for (int i = 0; i < T::kRowsB; ++i) {
          const uint32_t value = i * T::kRowStep < filters_ ? filter(a, i)[term + byte] : 0;
          filters[i][byte / 4] |= value << (byte % 4 * 8);
        }
        at.advance(1, a);
      }
    }
#pragma unroll
    for (int i = 0; i < T::kRowsA; ++i) {
      *reinterpret_cast<uint4*>(stage + place_ + i * kStepBytes) =
          make_uint4(pixels[i][0], pixels[i][1], pixels[i][2], pixels[i][3]);
    }
#pragma unroll
    for (int i = 0; i < T::kRowsB; ++i) {
      *reinterpret_cast<uint4*>(stage + T::kBytesA + place_ + i * kStepBytes) =
          make_uint4(filters[i][0], filters[i][1], filters[i][2], filters[i][3]);
    }
  }

  __device__ __forceinline__ int chunk() const { return chunk_; }
  __device__ __forceinline__ static void copy_chunk(uint8_t* to, const uint8_t* from, bool valid) {
    copy_async<kChunkBytes>(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(from), valid);
  }

 private:
  __device__ __forceinline__ bool is_pixel(const QuantizedArguments& a, int i, int down, int right) const {
    return static_cast<unsigned>(top_[i] + down) < static_cast<unsigned>(a.rows) &&
           static_cast<unsigned>(left_[i] + right) < static_cast<unsigned>(a.columns);
  }
  __device__ __forceinline__ const uint8_t* filter(const QuantizedArguments& a, int i) const {
    return filter_ + int64_t{i * T::kRowStep} * a.terms;
  }

  static constexpr int kStepBytes = T::kRowStep * T::kTileK;

  int chunk_, place_;                     // place_: of the first row's chunk in a stage
  int top_[T::kRowsA], left_[T::kRowsA];  // of the first tap's pixel, which may lie outside
  const uint8_t* corner_[T::kRowsA];      // that pixel
  const uint8_t* filter_;                 // of the thread's first row; further ones lie in even steps
  int filters_;                           // from that row on
};

// d += a b, of fragments 16 x 32 and 32 x 8. Of a lane, g = lane / 4 and t = lane % 4: d[0], d[1] are row g, columns 2t
// and 2t + 1, d[2], d[3] row g + 8; a[0] holds row g, k of 4t to 4t + 3, a[1] row g + 8, a[2] and a[3] the same at k +
// 16; b0 holds column g, k of 4t to 4t + 3, b1 the same at k + 16.
__device__ __forceinline__ void multiply_bytes(int32_t (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// Adds the products of a stage to the sums of a warp, whose rows and columns in the tile begin at m and n.
template <class T>
__device__ __forceinline__ void multiply_stage(QuantizedSums<T>& sums, const uint8_t* stage, int m, int n) {
  constexpr uint32_t kHighestBits = 0x80808080U;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row_b = lane / 16 * 8 + lane % 8;
  const uint8_t* const tile_a = stage + m * T::kTileK;
  const uint8_t* const tile_b = stage + T::kBytesA + n * T::kTileK;
#pragma unroll
  for (int step = 0; step < T::kTileK / 32; ++step) {
    const uint8_t* const from_a = tile_a + T::place(lane % 16, step * 2 + lane / 16);
    const uint8_t* const from_b = tile_b + T::place(row_b, step * 2 + lane / 8 % 2);
    uint32_t a[T::kFragmentsM][4], b[T::kFragmentsN / 2][4];
#pragma unroll
    for (int i = 0; i < T::kFragmentsM; ++i) load_matrices<false>(a[i], from_a + i * 16 * T::kTileK);
#pragma unroll
    for (int j = 0; j < T::kFragmentsN / 2; ++j) {
      load_matrices<false>(b[j], from_b + j * 16 * T::kTileK);
#pragma unroll
      for (uint32_t& four : b[j]) four ^= kHighestBits;
    }
#pragma unroll
    for (int i = 0; i < T::kFragmentsM; ++i) {
#pragma unroll
      for (int j = 0; j < T::kFragmentsN; ++j) {
        multiply_bytes(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
}

template <class T, bool kGather>
__global__ void __launch_bounds__(T::kThreads, T::kBlocks)
    quantized_convolution(const __grid_constant__ QuantizedArguments a) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ QuantizedColumns<T> columns;
  // Neighbouring blocks have the same pixels, which are the larger operand.
  const int tiles_n = (a.outputs + T::kTileN - 1) / T::kTileN;
  const int first_pixel = static_cast<int>(blockIdx.x) / tiles_n * T::kTileM;
  const int first_filter = static_cast<int>(blockIdx.x) % tiles_n * T::kTileN;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int m = warp / T::kWarpsN * T::kWarpM, n = warp % T::kWarpsN * T::kWarpN;

  const QuantizedRows<T> rows(a, first_pixel, first_filter);
  int term = rows.chunk() * kChunkBytes;
  QuantizedTerm at(term, a);
  const auto copy_tile = [&](int index) {
    uint8_t* const stage = shared + index % T::kStages * T::kStageBytes;
    if constexpr (kGather) {
      rows.gather(a, term, stage);
    } else {
      rows.copy(a, term, at, stage);
      at.advance(T::kTileK, a);
    }
    term += T::kTileK;
  };

  // The next convolution may take multiprocessors that the last blocks of this one leave free.
  wait_for_kernel_before();
  let_next_kernel_start();
  const bool early_residual = a.residual != nullptr && a.vectors;
  uint8_t* const results = shared + (early_residual ? T::kStagesBytes : 0);
  if (early_residual) {  // in the first group of copies
    for_results<T>(a, first_pixel, first_filter, [&](int in_tile, int64_t of_y, int /*bytes*/) {
      QuantizedRows<T>::copy_chunk(results + in_tile, a.residual + of_y, true);
    });
  }
  const int tiles = (a.terms + T::kTileK - 1) / T::kTileK;
#pragma unroll
  for (int index = 0; index < T::kStages - 1; ++index) {
    if (index < tiles) copy_tile(index);
    commit_copies();
  }
  const bool mine_strange = columns.fill(a, first_filter);
  QuantizedSums<T> sums = {};
  for (int index = 0; index < tiles; ++index) {
    wait_copies<T::kStages - 2>();
    __syncthreads();  // the tile is there, and all are done with the one whose stage comes next
    if (index + T::kStages - 1 < tiles) copy_tile(index + T::kStages - 1);
    commit_copies();
    multiply_stage<T>(sums, shared + index % T::kStages * T::kStageBytes, m, n);
  }
  wait_copies<0>();
  // All are done with the last tile, whose place the results take.
  const bool strange = __syncthreads_or(mine_strange ? 1 : 0) != 0;

  if (a.numbers != nullptr) return write_numbers<T>(a, sums, columns, first_pixel, first_filter, m, n);

  if (a.residual != nullptr && !early_residual) {
    for_results<T>(a, first_pixel, first_filter, [&](int in_tile, int64_t of_y, int bytes) {
      for (int i = 0; i < bytes; ++i) results[in_tile + i] = a.residual[of_y + i];
    });
    __syncthreads();
  }
  store_sums<T>(a, strange, sums, columns, results, m, n);
  __syncthreads();
  write_results<T>(a, results, first_pixel, first_filter);
}

template <QuantizedTile tile, bool kGather>
void launch_quantized_tile(const QuantizedArguments& arguments, cudaStream_t stream) {
  using T = QuantizedTiling<tile>;
  const auto kernel = quantized_convolution<T, kGather>;
  const int shared_bytes =
      arguments.residual != nullptr && arguments.vectors ? T::kResidualSharedBytes : T::kSharedBytes;
  allow_shared_memory(kernel, static_cast<std::size_t>(shared_bytes));
  const int64_t blocks = cuda::divide_up(int64_t{arguments.pixels}, int64_t{T::kTileM}) *
                         cuda::divide_up(int64_t{arguments.outputs}, int64_t{T::kTileN});
  const cuda::Launch shape{
      .grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(arguments.groups)),
      .block = dim3(T::kThreads),
      .shared_bytes = static_cast<unsigned>(shared_bytes),
  };
  launch_with(kernel, shape, {.early = true}, stream, arguments);
}

}  // namespace gpunn::cuda_tiled
