// The epilogue of small_convolution_kernel.cuh. It adds the sums of a block's groups in shared memory, adds those of a
// cluster's blocks through distributed shared memory, always in the same order, and stores the result.
#pragma once

#include <cstdint>

#include <cooperative_groups.h>

#include "conv/small/small_convolution_fragments.cuh"
#include "conv/small/small_convolution_parts.cuh"
#include "conv/small/small_convolution_tile.cuh"
#include "quads.cuh"

namespace gpunn::cuda_tiled::small {

#ifdef GPUNN_CONV_TENSOR_CORES

// Adds the groups' sums, in order, to `shared`. A barrier must follow.
template <class T>
__device__ __forceinline__ void add_groups(float* shared, const Sums& sum, const WarpTile& tile) {
#pragma unroll
  for (int g = 0; g < T::kGroups; ++g) {
    if (g > 0) __syncthreads();
    if (tile.group != g) continue;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          auto* to = reinterpret_cast<float2*>(shared + (tile.row + i * 16 + half * 8 + tile.lane / 4) * T::kPitch +
                                               tile.column + j * 8 + tile.lane % 4 * 2);
          const float2 before = g == 0 ? make_float2(0.0f, 0.0f) : *to;
          *to = make_float2(before.x + sum[i][j][half * 2], before.y + sum[i][j][half * 2 + 1]);
        }
      }
    }
  }
}

// The values of the first kRanks blocks at `word`, in their order; all are read before any is added.
template <int kRanks, class Value>
__device__ __forceinline__ Value total_of_ranks(float* shared, int word, const Value& zero) {
  const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  Value part[kRanks];
#pragma unroll
  for (int rank = 0; rank < kRanks; ++rank) {
    part[rank] = *reinterpret_cast<const Value*>(cluster.map_shared_rank(shared, rank) + word);
  }
  Value total = zero;
#pragma unroll
  for (int rank = 0; rank < kRanks; ++rank) total = total + part[rank];
  return total;
}

template <class Value>
__device__ __forceinline__ Value total_of_cluster(float* shared, int ranks, int word, const Value& zero) {
  switch (ranks) {
    case 1:
      return *reinterpret_cast<const Value*>(shared + word);
    case 2:
      return total_of_ranks<2>(shared, word, zero);
    case 4:
      return total_of_ranks<4>(shared, word, zero);
    default:
      return total_of_ranks<kMostSplits>(shared, word, zero);
  }
}

// Adds up and stores a block's part of the result: the blocks of a cluster share the rows of their tile.
template <class T>
struct TileStore {
  const Plan& plan;
  const Arguments& arguments;
  const Place& place;
  float* shared;
  int own_rows;
  int channels, plane;  // of the result's images
  int row_size;         // from row to row of the product, in the result

  __device__ __forceinline__ float bias_of(int row) const {
    return T::kFprop && arguments.bias != nullptr ? arguments.bias[row] : 0.0f;
  }

  __device__ __forceinline__ float finished(float value, float bias) const {
    if constexpr (T::kFprop) {
      value += bias;
      if (arguments.relu) value = value < 0.0f ? 0.0f : value;
    }
    return value;
  }

  __device__ __forceinline__ void store_vectors() const {
    constexpr int kVectors = T::kColumns / 4;
    const int column = place.thread % kVectors * 4;
    int to = place.first_column + column;
    if constexpr (!T::kWgrad) {
      const auto [image, at] = plan.by_pixel_plane(to);
      to = image * channels * plane + at;
    }
    for (int i = place.thread / kVectors; i < own_rows && column < place.columns_left; i += T::kThreads / kVectors) {
      const int row = place.rank * own_rows + i;
      if (row >= place.rows_left) break;
      const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      const float4 total = total_of_cluster(shared, plan.splits, row * T::kPitch + column, zero);
      const float bias = bias_of(place.first_row + row);
      *reinterpret_cast<float4*>(arguments.out + to + (place.first_row + row) * row_size) = make_float4(
          finished(total.x, bias), finished(total.y, bias), finished(total.z, bias), finished(total.w, bias));
    }
  }

  __device__ __forceinline__ void store_floats() const {
    const int column = place.thread % T::kColumns;
    int to = place.first_column + column;
    // Of a data gradient with a stride the zeros up to the next pixel of dy, or to the edge, are written too.
    int block_rows = 1;
    int block_columns = 1;
    if constexpr (T::kStrided) {
      const auto [image, at] = plan.by_pixel_plane(to);
      const auto [y, x] = plan.by_pixel_columns(at);
      to = image * channels * plane + y * plan.row_stride * plan.input_columns + x * plan.column_stride;
      block_rows = y + 1 == plan.output_rows ? plan.input_rows - y * plan.row_stride : plan.row_stride;
      block_columns = x + 1 == plan.output_columns ? plan.input_columns - x * plan.column_stride : plan.column_stride;
    } else if constexpr (!T::kWgrad) {
      const auto [image, at] = plan.by_pixel_plane(to);
      to = image * channels * plane + at;
    }
    for (int i = place.thread / T::kColumns; i < own_rows && column < place.columns_left;
         i += T::kThreads / T::kColumns) {
      const int row = place.rank * own_rows + i;
      if (row >= place.rows_left) break;
      const float total = total_of_cluster(shared, plan.splits, row * T::kPitch + column, 0.0f);
      float* out = arguments.out + to + (place.first_row + row) * row_size;
      *out = finished(total, bias_of(place.first_row + row));
      if constexpr (T::kStrided) {
        for (int y = 0; y < block_rows; ++y) {
          for (int x = y == 0 ? 1 : 0; x < block_columns; ++x) out[y * plan.input_columns + x] = 0.0f;
        }
      }
    }
  }
};

template <class T>
__device__ __forceinline__ void store_tile(const Plan& plan, const Arguments& arguments, const Place& place,
                                           float* shared) {
  const int plane = T::kDgrad ? plan.input_plane : plan.output_plane;
  const int channels = T::kDgrad ? plan.inputs : plan.outputs;
  const int row_size = T::kWgrad ? plan.columns : plane;
  const TileStore<T> tile{plan, arguments, place, shared, T::kRows / plan.splits, channels, plane, row_size};
  if (plan.together) {
    tile.store_vectors();
  } else {
    tile.store_floats();
  }
}

#endif

}  // namespace gpunn::cuda_tiled::small
