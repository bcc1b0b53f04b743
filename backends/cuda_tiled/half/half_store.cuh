// The epilogue of half_product. Sums go from registers through shared memory to y in bf16 or f16, in pieces of 16 bytes
// of a row. Parts of split sums go to memory in float.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "fragments.cuh"
#include "half/half_copies.cuh"
#include "half/half_gradient.cuh"
#include "half/half_product.hpp"
#include "half/half_statistics.cuh"
#include "shared_barrier.cuh"

namespace gpunn::cuda_tiled {

// The columns of y' from one on that are neighbours in y: where they begin there, and how many they are.
struct ColumnSpan {
  int first;
  int count;
};

__device__ __forceinline__ ColumnSpan span_of(const HalfProduct& product, int column) {
  if (!product.image_b) return {column, product.columns - column};
  if (column >= product.columns) return {0, 0};
  const int box = column / 64;
  const Divider::Result tap = product.channel_blocks(box);
  const int channel = tap.rest * 64 + column % 64;
  return {tap.quotient * product.channels + channel, product.channels - channel};
}

// The row and the column of a tile, in tiles.
__device__ __forceinline__ int2 place_of_tile(const HalfPhase& phase, int tile) {
  const Divider::Result band = phase.band_tiles(tile);
  const int first_row = band.quotient * phase.band;
  const bool is_last = first_row + phase.band > phase.row_tiles;
  const Divider::Result within = (is_last ? phase.last_height : phase.band_height)(band.rest);
  return make_int2(first_row + within.rest, within.quotient);
}

__device__ __forceinline__ int64_t place_of(const RowPlaces& places, int row) {
  if (!places.scattered) return row * places.row_pitch;
  const Divider::Result image = places.image(row);
  const Divider::Result line = places.columns(image.rest);
  return places.first + image.quotient * places.image_pitch + line.quotient * places.row_pitch +
         line.rest * places.column_pitch;
}

// Four matrices of 8 x 8 numbers of 16 bits, of which a thread gives two of a row of each, to the rows whose addresses
// the lanes name: eight lanes a matrix.
__device__ __forceinline__ void store_matrices(uint32_t address, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
#endif
}

__device__ __forceinline__ uint4 load_chunk(uint32_t address) {
  uint4 chunk;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(chunk.x), "=r"(chunk.y), "=r"(chunk.z), "=r"(chunk.w)
               : "r"(address)
               : "memory");
  return chunk;
}

// Of this thread. Volatile keeps the compiler from computing all that follows from it before the first tile, which
// would take the registers of the sums.
__device__ __forceinline__ int lane_index() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// Two neighbouring columns of a row of the residual, of which `count` are left; zeros of a row that is not there.
template <bool kBf16>
__device__ __forceinline__ float2 residual_pair(const uint16_t* at, int count, bool vectors) {
  if (at == nullptr || count <= 0) return make_float2(0.0F, 0.0F);
  if (vectors) return numbers_of<kBf16>(*reinterpret_cast<const uint32_t*>(at));
  return numbers_of<kBf16>(at[0] | (count > 1 ? uint32_t{at[1]} << 16U : 0U));
}

// The sums of a warp's 16 rows from `row` on, with bias, residual and ReLU; zeros where there is nothing to sum up. A
// warp takes kPass columns at a time through its part of shared memory, where chunk c of 16 bytes of a row lies so that
// neither the matrices' rows nor the readers' chunks share banks. With T::kStatistics it leaves there, at the end, mean
// and squares of the rows before row `counted`, with T::kGradient their sums.
template <class T>
__device__ __forceinline__ void store_half_sums(const float (&d)[T::kColumns / 2], const HalfProduct& product,
                                                const HalfPhase& phase, int row, int column, uint8_t* staging,
                                                [[maybe_unused]] int counted) {
  constexpr bool kBf16 = T::kElement == HalfElement::kBf16;
  constexpr int kChunks = T::kPass / 8;      // of a row
  constexpr int kRowsAtOnce = 32 / kChunks;  // that the warp stores
  constexpr int kStores = 16 / kRowsAtOnce;
  if (row >= phase.rows) return;
  const int lane = lane_index();
  uint32_t shared = shared_address(staging);
  const auto place_in_shared = [&](int of_row, int chunk) {
    const int turned = chunk ^ (of_row * kChunks / 8 % kChunks);
    return shared + static_cast<uint32_t>((of_row * kChunks + turned) * 16);
  };
  const bool bulk = T::kBulk && product.bulk;
  uint16_t* to[kStores];
#pragma unroll
  for (int i = 0; i < kStores; ++i) {
    const int mine = row + i * kRowsAtOnce + lane / kChunks;
    to[i] = mine < phase.rows ? static_cast<uint16_t*>(product.y) + place_of(phase.places, mine) : nullptr;
  }
  const int chunk = lane % kChunks;
  // Loaded before the memory operations, across which the compiler loads again.
  const float* const bias_of_columns = product.epilogue.bias;
  const bool relu = product.epilogue.relu, empty = phase.blocks == 0, vectors = product.vectors;
  const bool plain = bias_of_columns == nullptr && !relu && !empty && !T::kResidual;
  [[maybe_unused]] const uint16_t* residual_rows[2] = {};
  if constexpr (T::kResidual) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int mine = row + i * 8 + lane / 4;
      if (mine >= phase.rows) continue;
      residual_rows[i] = static_cast<const uint16_t*>(product.residual) + place_of(phase.places, mine);
    }
  }
  [[maybe_unused]] WarpStatistics<T> statistics(row, counted);
  [[maybe_unused]] WarpGradients<T> gradients(row, counted);
#pragma unroll
  for (int pass = 0; pass < T::kColumns / T::kPass; ++pass) {
    const ColumnSpan span = span_of(product, column + pass * T::kPass);
    if (bulk && lane == 0) wait_for_store_reads<T::kPieces - 1>();  // of the piece that was at this place
    if (span.count <= 0) {
      if (bulk && lane == 0) end_store_group();
      __syncwarp();
      continue;
    }
    if (bulk) __syncwarp();
    shared = shared_address(staging) + static_cast<uint32_t>(pass % T::kPieces * T::kPieceBytes);
    [[maybe_unused]] typename WarpGradients<T>::Chunks chunks;
    [[maybe_unused]] const int of_chunk = chunk * 8 < span.count ? span.first + chunk * 8 : -1;
    if constexpr (T::kGradient) gradients.load(chunks, product, to, of_chunk);
#pragma unroll
    for (int pair = 0; pair < kChunks / 2; ++pair) {
      float sums[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) sums[i] = d[(pass * kChunks + pair * 2) * 4 + i];
      if constexpr (T::kResidual) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // rows g, g + 8 of eight columns, then of the next eight
          const int at = (pair * 2 + i / 2) * 8 + lane % 4 * 2;
          const uint16_t* const of_row = residual_rows[i % 2];
          const float2 two =
              residual_pair<kBf16>(of_row == nullptr ? nullptr : of_row + span.first + at, span.count - at, vectors);
          sums[i * 2] += two.x;
          sums[i * 2 + 1] += two.y;
        }
      }
      if (!plain) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const int at = (pair * 2 + i / 4) * 8 + lane % 4 * 2 + i % 2;
          if (empty) sums[i] = 0.0F;
          if (bias_of_columns != nullptr && at < span.count) sums[i] += bias_of_columns[span.first + at];
          sums[i] = rectified(sums[i], relu);
        }
      }
      store_matrices(place_in_shared(lane / 8 % 2 * 8 + lane % 8, pair * 2 + lane / 16),
                     half_pair<kBf16>(sums[0], sums[1]), half_pair<kBf16>(sums[2], sums[3]),
                     half_pair<kBf16>(sums[4], sums[5]), half_pair<kBf16>(sums[6], sums[7]));
    }
    if (bulk) fence_shared();
    __syncwarp();
    if (bulk) {
      if (lane == 0) {
        store_box_of_tap(&product.y_map, shared, span.first, 0, row);
        end_store_group();
      }
    } else if constexpr (T::kGradient) {
      gradients.store(chunks, product, to, pass, of_chunk, lane,
                      [&](int i) { return load_chunk(place_in_shared(i * kRowsAtOnce + lane / kChunks, chunk)); });
    } else {
#pragma unroll
      for (int i = 0; i < kStores; ++i) {
        const uint4 eight = load_chunk(place_in_shared(i * kRowsAtOnce + lane / kChunks, chunk));
        if (to[i] == nullptr) continue;
        uint16_t* const at = to[i] + span.first + chunk * 8;
        if (vectors) {
          if (chunk * 8 < span.count) *reinterpret_cast<uint4*>(at) = eight;
        } else {
          const uint32_t words[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
          for (int k = 0; k < 8; ++k) {
            if (chunk * 8 + k < span.count) at[k] = static_cast<uint16_t>(words[k / 2] >> (k % 2 * 16));
          }
        }
      }
    }
    if constexpr (T::kStatistics) statistics.add(pass, lane, place_in_shared);
    __syncwarp();
  }
  if constexpr (T::kStatistics) statistics.leave(lane, staging);
  if constexpr (T::kGradient) gradients.leave(lane, staging);
}

// The same rows' sums as a part, a cluster's tile, which half_parts.cu adds to the others; `row` and `column` are in
// it.
template <class T>
__device__ __forceinline__ void leave_half_sums(const float (&d)[T::kColumns / 2], float* part, int row, int column) {
  const int lane = lane_index();
  part += (row + lane / 4) * T::kClusterColumns + column + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < T::kColumns / 8; ++j) {
    *reinterpret_cast<float2*>(part + j * 8) = make_float2(d[j * 4], d[j * 4 + 1]);
    *reinterpret_cast<float2*>(part + 8 * T::kClusterColumns + j * 8) = make_float2(d[j * 4 + 2], d[j * 4 + 3]);
  }
}

}  // namespace gpunn::cuda_tiled
