// How tiles of a packed matrix get into shared memory as register_tile wants them, [k][outer], outer being m or n.
#pragma once

#include <cstdint>

#include "async_copy.cuh"

namespace gpunn::cuda_tiled {

// Of a loader that copies asynchronously: nothing stays in registers.
struct NothingHeld {};

// Of a matrix [k][outer], whose neighbours in shared memory are neighbours in global memory too. With Bytes = 16,
// outer must be a multiple of 4 and the matrix aligned.
template <int BlockOuter, int BlockK, int Stride, int Threads, int Bytes>
class StraightLoader {
 public:
  // For the tiles of columns first_outer... from row first_k up to end_k.
  __device__ __forceinline__ StraightLoader(const float* matrix, int outer, int first_outer, int first_k, int end_k,
                                            int thread)
      : StraightLoader(matrix, outer, outer, first_outer, first_k, end_k, thread) {}

  // The same of a part of a matrix, whose rows lie row_floats apart.
  __device__ __forceinline__ StraightLoader(const float* matrix, int outer, int row_floats, int first_outer,
                                            int first_k, int end_k, int thread)
      : row_floats_(row_floats), rows_left_(end_k - first_k - thread / kChunks) {
    const int chunk = thread % kChunks * kFloats;
    // A chunk past the edge feeds only sums that nobody stores: any chunk will do.
    const int column = first_outer + chunk < outer ? first_outer + chunk : 0;
    source_ = matrix + int64_t{first_k + thread / kChunks} * row_floats + column;
    to_ = thread / kChunks * Stride + chunk;
    active_ = thread < kRows * kChunks && thread / kChunks < BlockK;
  }

  __device__ __forceinline__ void finish(float* /*shared*/, NothingHeld /*held*/) const {}

  __device__ __forceinline__ NothingHeld start(float* shared) {
    if (kThreadsDivide || active_) {
      const float* source = source_;
      if (rows_left_ >= BlockK) {  // with room to spare, the whole tile is there
#pragma unroll
        for (int pass = 0; pass < kPasses; ++pass, source += int64_t{kRows} * row_floats_) {
          copy_async<kFloats * 4>(shared + to_ + pass * kRows * Stride, source);
        }
      } else {
#pragma unroll
        for (int pass = 0; pass < kPasses; ++pass, source += int64_t{kRows} * row_floats_) {
          copy_async<kFloats * 4>(shared + to_ + pass * kRows * Stride, source, pass * kRows < rows_left_);
        }
      }
    }
    source_ += int64_t{BlockK} * row_floats_;
    rows_left_ -= BlockK;
    return {};
  }

 private:
  static constexpr int kFloats = Bytes / 4;
  static constexpr int kChunks = BlockOuter / kFloats;  // of a row
  static_assert(kChunks <= Threads);
  static constexpr int kRows = Threads / kChunks < BlockK ? Threads / kChunks : BlockK;  // of a pass
  static constexpr int kPasses = BlockK / kRows;
  static constexpr bool kThreadsDivide = kRows * kChunks == Threads;
  static_assert(BlockK % kRows == 0);

  const float* source_;
  int row_floats_;
  int rows_left_;
  int to_;
  bool active_;
};

// Of a matrix [outer][k], which must be transposed on the way. 8 neighbouring lanes read 32 bytes of a row, the next
// 8 of the next row, so that global memory is read by whole sectors; each lane puts its float where it belongs.
template <int BlockOuter, int BlockK, int Stride, int Threads>
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
    to_ = thread % 8 * Stride + row;
    active_ = row < BlockOuter;
  }

  __device__ __forceinline__ void finish(float* /*shared*/, NothingHeld /*held*/) const {}

  __device__ __forceinline__ NothingHeld start(float* shared) {
    if (kThreadsDivide || active_) {
      if (left_ >= BlockK) {
#pragma unroll
        for (int pass = 0; pass < kPasses; ++pass) {
          const float* source = source_ + offset_[pass];
#pragma unroll
          for (int k = 0; k < BlockK; k += 8) copy_async<4>(shared + to_ + k * Stride + pass * kRows, source + k);
        }
      } else {
#pragma unroll
        for (int pass = 0; pass < kPasses; ++pass) {
          const float* source = source_ + offset_[pass];
#pragma unroll
          for (int k = 0; k < BlockK; k += 8) {
            copy_async<4>(shared + to_ + k * Stride + pass * kRows, source + k, k < left_);
          }
        }
      }
    }
    source_ += BlockK;
    left_ -= BlockK;
    return {};
  }

 private:
  static constexpr int kRows = Threads / 8 < BlockOuter ? Threads / 8 : BlockOuter;  // of a pass
  static constexpr int kPasses = BlockOuter / kRows;
  static constexpr bool kThreadsDivide = kRows * 8 == Threads;
  static_assert(BlockOuter % kRows == 0);

  const float* source_;
  int64_t offset_[kPasses];
  int left_;
  int to_;
  bool active_;
};

// The same by loads of 16 bytes into registers, which `finish` stores. k must be a multiple of 4 and the matrix
// aligned. Of the 32 lanes of a warp 2 are neighbours along a row: their 16 rows of 32 bytes are whole sectors, and
// each of the four stores of a warp hits 32 different banks.
template <int BlockOuter, int BlockK, int Stride, int Threads>
class QuadLoader {
  static constexpr int kRows = Threads / 2 < BlockOuter ? Threads / 2 : BlockOuter;  // of a pass
  static constexpr int kPasses = BlockOuter / kRows;
  static constexpr int kGroups = Threads / 2 / kRows;  // of threads, each of which takes some of the eights of k
  static constexpr int kEights = BlockK / 8 / kGroups;
  static_assert(kRows * kPasses == BlockOuter && kGroups * kEights * 8 == BlockK);
  static_assert(kRows * kGroups * 2 == Threads);

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
    to_ = k * Stride + row;
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
    source_ += BlockK;
    left_ -= BlockK;
    return held;
  }

  __device__ __forceinline__ void finish(float* shared, const Held& held) const {
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
#pragma unroll
      for (int eight = 0; eight < kEights; ++eight) {
        const float4& quad = held.quads[pass * kEights + eight];
        float* const to = shared + to_ + 8 * eight * Stride + pass * kRows;
        to[0] = quad.x;
        to[Stride] = quad.y;
        to[2 * Stride] = quad.z;
        to[3 * Stride] = quad.w;
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
