// Copies a stage of small_convolution_kernel.cuh to shared memory: the tiles of both operands, in the layout of global
// memory. Rows, columns and terms that do not exist, and taps outside the image, become zeros.
#pragma once

#include <cstdint>

#include "conv/small/small_convolution_parts.cuh"
#include "conv/small/small_convolution_tile.cuh"

namespace gpunn::cuda_tiled::small {

#ifdef GPUNN_CONV_TENSOR_CORES

// How the threads of a block share the copying of rows of kLength floats: a thread copies a vector or a float at one
// place, of every kAtOnce-th row. Where floats are copied a warp is at one row, so that what a row needs is looked up
// for all its lanes.
template <class T, int kLength>
struct RowShare {
  static constexpr int kBytes = T::kVectors ? 16 : 4;
  static constexpr int kAtOnce = T::kVectors ? T::kThreads / (kLength / 4) : T::kWarps / (kLength / 32);

  static __device__ __forceinline__ int at(const Place& place) {
    return T::kVectors ? place.thread % (kLength / 4) * 4 : place.warp % (kLength / 32) * 32 + place.lane;
  }
  static __device__ __forceinline__ int first(const Place& place) {
    return T::kVectors ? place.thread / (kLength / 4) : place.warp / (kLength / 32);
  }
};

// In shared memory: where taps stand beside a pixel's first; for weight gradients columns too, and the bit of a
// column's tap, if there is such a column.
struct TapTables {
  int* tap;
  int2* column;
};

template <class T>
inline constexpr int kTableColumns = (T::kWgrad && T::kTaps) ? T::kColumns : 1;

template <class T>
__device__ __forceinline__ void fill_tables(const TapTables& tables, const Plan& plan, const Place& place) {
  const int thread = place.thread;
  if (thread < plan.taps) tables.tap[thread] = T::kDgrad ? output_offset(plan, thread) : input_offset(plan, thread);
  if constexpr (T::kWgrad) {
    for (int i = thread; i < T::kColumns; i += T::kThreads) {
      const auto [channel, tap] = plan.by_taps(place.first_column + i);
      tables.column[i] = {channel * plan.input_plane + input_offset(plan, tap), i < place.columns_left ? 1 << tap : 0};
    }
  }
}

// Starts the copies of a stage by cp.async; the caller ends the copy groups.
template <class T>
struct StageCopier {
  const Plan& plan;
  const Arguments& arguments;
  const Place& place;
  const TapTables& tables;
  TapPixel pixel{};  // of this thread's column, where columns are pixels

  // The column of pixels that this thread copies is the same in each stage. No taps where there is none.
  __device__ __forceinline__ void find_pixel() {
    const int column = RowShare<T, T::kColumns>::at(place);
    if (column >= place.columns_left) return;
    const int index = place.first_column + column;
    if constexpr (T::kDgrad && T::kTaps) {
      pixel = output_pixel(plan, index);
    } else if constexpr (T::kDgrad || T::kVectors) {
      const auto [image, at] = plan.by_output_plane(index);
      pixel.from = image * (T::kDgrad ? plan.outputs : plan.inputs) * plan.output_plane + at;
      pixel.taps = 1;
    } else {
      pixel = input_pixel<T::kSource>(plan, index);
    }
  }

  __device__ __forceinline__ void operator()(int chunk, uint32_t stage) const {
    const int term = chunk * T::kTerms;
    const int terms_left = plan.terms - term;
    if constexpr (T::kWgrad) {
      copy_gradient_and_pixels(stage, term, terms_left);
    } else {
      const uint32_t second = stage + T::kFirst * 4;
      copy_filters(stage, term, terms_left);
      if constexpr (T::kTaps) {
        copy_pixels_of_taps(second, term, terms_left);
      } else {
        copy_pixels(second, term, terms_left);
      }
    }
  }

 private:
  // Weight gradients: dy and x, whose pixels are the terms. A thread looks up its pixel once for all rows of both.
  __device__ __forceinline__ void copy_gradient_and_pixels(uint32_t stage, int term, int terms_left) const {
    using Share = RowShare<T, T::kTerms>;
    const int at = Share::at(place);
    const int first = Share::first(place);
    const bool exists = at < terms_left;
    int dy_from = 0;
    TapPixel of_x{};
    if (exists) {
      const auto [image, index] = plan.by_output_plane(term + at);
      dy_from = image * plan.outputs * plan.output_plane + index;
      if constexpr (T::kVectors) {
        of_x = {image * plan.inputs * plan.input_plane + index, 1};
      } else {
        of_x = input_pixel<T::kSource>(plan, term + at);
      }
    }
    const float* dy = arguments.first + dy_from + (place.first_row + first) * plan.output_plane;
    uint32_t to = stage + static_cast<uint32_t>(first * T::kTermPitch + at) * 4;
#pragma unroll
    for (int i = 0; i < T::kRows; i += Share::kAtOnce) {
      copy<Share::kBytes>(to + static_cast<uint32_t>(i * T::kTermPitch) * 4, dy + int64_t{i} * plan.output_plane,
                          exists && first + i < place.rows_left);
    }
    to += T::kFirst * 4;
    if constexpr (T::kTaps) {
#pragma unroll
      for (int i = 0; i < T::kColumns; i += Share::kAtOnce) {
        const int2 column = tables.column[first + i];
        copy<4>(to + static_cast<uint32_t>(i * T::kTermPitch) * 4, arguments.second + (of_x.from + column.x),
                (of_x.taps & static_cast<uint32_t>(column.y)) != 0);
      }
    } else {
      const float* x = arguments.second + of_x.from + (place.first_column + first) * plan.input_plane;
#pragma unroll
      for (int i = 0; i < T::kColumns; i += Share::kAtOnce) {
        copy<Share::kBytes>(to + static_cast<uint32_t>(i * T::kTermPitch) * 4, x + int64_t{i} * plan.input_plane,
                            exists && first + i < place.columns_left);
      }
    }
  }

  // Filters by terms; for data gradients terms by channels, where taps lie between the channels.
  __device__ __forceinline__ void copy_filters(uint32_t stage, int term, int terms_left) const {
    const float* w = arguments.second;
    if constexpr (T::kFprop) {
      copy_rows<T::kThreads, T::kRows, T::kTerms, T::kTermPitch>(stage, w + place.first_row * plan.terms + term,
                                                                 plan.terms, place.rows_left, terms_left);
    } else if constexpr (!T::kTaps) {
      copy_rows<T::kThreads, T::kTerms, T::kRows, column_pitch(T::kRows)>(stage, w + term * plan.rows + place.first_row,
                                                                          plan.rows, terms_left, place.rows_left);
    } else {
      // A warp takes 8 terms of 4 rows, which lie side by side.
      const int low_term = place.lane % 8;
#pragma unroll
      for (int i = 0; i < T::kTerms; i += 8) {
        const auto [filter, tap] = plan.by_taps(term + i + low_term);
        const float* from = w + (filter * plan.rows + place.first_row) * plan.taps + tap;
        const uint32_t to = stage + static_cast<uint32_t>((i + low_term) * column_pitch(T::kRows)) * 4;
#pragma unroll
        for (int row = place.warp * 4 + place.lane / 8; row < T::kRows; row += T::kWarps * 4) {
          copy<4>(to + static_cast<uint32_t>(row) * 4, from + int64_t{row} * plan.taps,
                  i + low_term < terms_left && row < place.rows_left);
        }
      }
    }
  }

  // Channels by pixels, of x or for data gradients of dy.
  __device__ __forceinline__ void copy_pixels(uint32_t second, int term, int terms_left) const {
    using Share = RowShare<T, T::kColumns>;
    const int plane = T::kDgrad ? plan.output_plane : plan.input_plane;
    const int first = Share::first(place);
    const uint32_t to = second + static_cast<uint32_t>(first * T::kPitch + Share::at(place)) * 4;
    const float* from = arguments.first + pixel.from + (term + first) * plane;
#pragma unroll
    for (int i = 0; i < T::kTerms; i += Share::kAtOnce) {
      copy<Share::kBytes>(to + static_cast<uint32_t>(i * T::kPitch) * 4, from + int64_t{i} * plane,
                          pixel.taps != 0 && first + i < terms_left);
    }
  }

  // Channels and taps by pixels. A lane looks up a term for the warp.
  __device__ __forceinline__ void copy_pixels_of_taps(uint32_t second, int term, int terms_left) const {
    using Share = RowShare<T, T::kColumns>;
    static_assert(32 % Share::kAtOnce == 0);
    const int plane = T::kDgrad ? plan.output_plane : plan.input_plane;
    const int first = Share::first(place);
    const uint32_t to = second + static_cast<uint32_t>(first * T::kPitch + Share::at(place)) * 4;
    int offset[T::kTerms / 32];
    uint32_t named[T::kTerms / 32];
#pragma unroll
    for (int i = 0; i < T::kTerms / 32; ++i) {
      const auto [channel, tap] = plan.by_taps(term + i * 32 + place.lane);
      offset[i] = channel * plane + tables.tap[tap];
      named[i] = i * 32 + place.lane < terms_left ? 1U << tap : 0;
    }
#pragma unroll
    for (int i = 0; i < T::kTerms; i += Share::kAtOnce) {
      const int term_offset = __shfl_sync(0xffffffff, offset[i / 32], first + i % 32);
      const uint32_t tap = __shfl_sync(0xffffffff, named[i / 32], first + i % 32);
      copy<4>(to + static_cast<uint32_t>(i * T::kPitch) * 4, arguments.first + (pixel.from + term_offset),
              (pixel.taps & tap) != 0);
    }
  }
};

#endif

}  // namespace gpunn::cuda_tiled::small
