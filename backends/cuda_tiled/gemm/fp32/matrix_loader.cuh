// Loaders that copy tiles of a packed matrix to shared memory in the layout of register_tile: [k][outer], where outer
// is m or n.
#pragma once

#include <cstdint>

#include "async_copy.cuh"

namespace gpunn::cuda_tiled {

// The tiles that a loader fetches: `outer` x `k` numbers, by the threads of a block, into rows for each k that lie
// `stride` floats apart in shared memory.
struct LoadedTile {
  int outer;
  int k;
  int stride;
  int threads;
};

// The state of a loader that copies asynchronously: no registers.
struct NothingHeld {};

// For a matrix [k][outer], whose neighbours in shared memory are also neighbours in global memory. Bytes = 16 requires
// outer to be a multiple of 4 and the matrix to be aligned.
template <LoadedTile tile, int Bytes>
class StraightLoader {
 public:
  // For the tiles of columns first_outer... from row first_k up to end_k.
  __device__ __forceinline__ StraightLoader(const float* matrix, int outer, int first_outer, int first_k, int end_k,
                                            int thread)
      : outer_(outer), rows_left_(end_k - first_k - thread / kChunks) {
    const int chunk = thread % kChunks * kFloats;
    // A chunk past the edge feeds only sums that are never stored: any chunk will do.
    const int column = first_outer + chunk < outer ? first_outer + chunk : 0;
    source_ = matrix + int64_t{first_k + thread / kChunks} * outer + column;
    to_ = thread / kChunks * tile.stride + chunk;
    active_ = thread < kRows * kChunks && thread / kChunks < tile.k;
  }

  __device__ __forceinline__ void finish(float* /*shared*/, NothingHeld /*held*/) const {}

  __device__ __forceinline__ NothingHeld start(float* shared) {
    if (kThreadsDivide || active_) {
      const float* source = source_;
      if (rows_left_ >= tile.k) {  // with room to spare, the whole tile is there
#pragma unroll
        for (int pass = 0; pass < kPasses; ++pass, source += int64_t{kRows} * outer_) {
          copy_async<kFloats * 4>(shared + to_ + pass * kRows * tile.stride, source);
        }
      } else {
#pragma unroll
        for (int pass = 0; pass < kPasses; ++pass, source += int64_t{kRows} * outer_) {
          copy_async<kFloats * 4>(shared + to_ + pass * kRows * tile.stride, source, pass * kRows < rows_left_);
        }
      }
    }
    source_ += int64_t{tile.k} * outer_;
    rows_left_ -= tile.k;
    return {};
  }

 private:
  static constexpr int kFloats = Bytes / 4;
  static constexpr int kChunks = tile.outer / kFloats;  // of a row
  static_assert(kChunks <= tile.threads);
  static constexpr int kRows = tile.threads / kChunks < tile.k ? tile.threads / kChunks : tile.k;  // of a pass
  static constexpr int kPasses = tile.k / kRows;
  static constexpr bool kThreadsDivide = kRows * kChunks == tile.threads;
  static_assert(tile.k % kRows == 0);

  const float* source_;
  int outer_;
  int rows_left_;
  int to_;
  bool active_;
};

// For a matrix [outer][k], which is transposed on the way. 8 neighbouring lanes read 32 bytes of a row, and the next 8
// read the next row, so that whole sectors are read. Each lane stores its float at its transposed position.
template <LoadedTile tile>
class TransposingLoader {
 public:
  __device__ __forceinline__ TransposingLoader(const float* matrix, int outer, int size_k, int first_outer, int first_k,
                                               int end_k, int thread)
      : left_(end_k - first_k - thread % 8) {
    source_ = matrix + first_k + thread % 8;
    const int row = thread / 8;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int wanted = first_outer + row + pass * kRows;
      offset_[pass] = int64_t{wanted < outer ? wanted : outer - 1} * size_k;
    }
    to_ = thread % 8 * tile.stride + row;
    active_ = row < tile.outer;
  }

  __device__ __forceinline__ void finish(float* /*shared*/, NothingHeld /*held*/) const {}

  __device__ __forceinline__ NothingHeld start(float* shared) {
    if (kThreadsDivide || active_) {
      if (left_ >= tile.k) {
#pragma unroll
        for (int pass = 0; pass < kPasses; ++pass) {
          const float* source = source_ + offset_[pass];
#pragma unroll
          for (int k = 0; k < tile.k; k += 8) copy_async<4>(shared + to_ + k * tile.stride + pass * kRows, source + k);
        }
      } else {
#pragma unroll
        for (int pass = 0; pass < kPasses; ++pass) {
          const float* source = source_ + offset_[pass];
#pragma unroll
          for (int k = 0; k < tile.k; k += 8) {
            copy_async<4>(shared + to_ + k * tile.stride + pass * kRows, source + k, k < left_);
          }
        }
      }
    }
    source_ += tile.k;
    left_ -= tile.k;
    return {};
  }

 private:
  static constexpr int kRows = tile.threads / 8 < tile.outer ? tile.threads / 8 : tile.outer;  // of a pass
  static constexpr int kPasses = tile.outer / kRows;
  static constexpr bool kThreadsDivide = kRows * 8 == tile.threads;
  static_assert(tile.outer % kRows == 0);

  const float* source_;
  int64_t offset_[kPasses];
  int left_;
  int to_;
  bool active_;
};

// The same by loads of 16 bytes into registers, which `finish` stores. k must be a multiple of 4 and the matrix
// aligned. Of the 32 lanes of a warp 2 are neighbours along a row. Their 16 rows of 32 bytes are whole sectors, and
// each of the four stores of a warp hits 32 different banks.
template <LoadedTile tile>
class QuadLoader {
  static constexpr int kRows = tile.threads / 2 < tile.outer ? tile.threads / 2 : tile.outer;  // of a pass
  static constexpr int kPasses = tile.outer / kRows;
  static constexpr int kGroups = tile.threads / 2 / kRows;  // of threads, each of which takes some of the eights of k
  static constexpr int kEights = tile.k / 8 / kGroups;
  static_assert(kRows * kPasses == tile.outer && kGroups * kEights * 8 == tile.k);
  static_assert(kRows * kGroups * 2 == tile.threads);

 public:
  struct Held {
    float4 quads[kPasses * kEights];
  };

  __device__ __forceinline__ QuadLoader(const float* matrix, int outer, int size_k, int first_outer, int first_k,
                                        int end_k, int thread) {
    const int k = thread / 2 / kRows * (8 * kEights) + thread % 2 * 4;
    const int row = thread / 2 % kRows;
    left_ = end_k - first_k - k;
    source_ = matrix + first_k + k;
    to_ = k * tile.stride + row;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int wanted = first_outer + row + pass * kRows;
      offset_[pass] = int64_t{wanted < outer ? wanted : outer - 1} * size_k;
    }
  }

  __device__ __forceinline__ Held start(float* /*shared*/) {
    Held held;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
#pragma unroll
      for (int eight = 0; eight < kEights; ++eight) {
        float4& quad = held.quads[pass * kEights + eight];
        quad = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
        if (8 * eight < left_) quad = *reinterpret_cast<const float4*>(source_ + offset_[pass] + 8 * eight);
      }
    }
    source_ += tile.k;
    left_ -= tile.k;
    return held;
  }

  __device__ __forceinline__ void finish(float* shared, const Held& held) const {
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
#pragma unroll
      for (int eight = 0; eight < kEights; ++eight) {
        const float4& quad = held.quads[pass * kEights + eight];
        float* const to = shared + to_ + 8 * eight * tile.stride + pass * kRows;
        to[0] = quad.x;
        to[tile.stride] = quad.y;
        to[2 * tile.stride] = quad.z;
        to[3 * tile.stride] = quad.w;
      }
    }
  }

 private:
  const float* source_;
  int64_t offset_[kPasses];
  int left_;
  int to_;
};

}  // namespace gpunn::cuda_tiled
