// What each target of a convolution of channels-last images sees, as a row of a matrix: implicit GEMM's left factor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/convolution.hpp"
#include "convolution/geometry.hpp"

namespace gpunn::cpu {

using backends::ConvolutionPass;
using backends::ConvolutionShape;

// Channels-last images of a batch. Where there are groups, `channels` are those of one.
struct GroupedImages {
  int64_t height;
  int64_t width;
  int64_t channels;
  int64_t all_channels;
};

GroupedImages images_of(const ConvolutionShape& shape, bool outputs);

// The targets that take the same taps: a class of rows and one of columns.
struct TargetClass {
  AxisClass rows;
  AxisClass columns;

  int64_t taps() const { return rows.taps * columns.taps; }
  // Neighbours see pixels that are further apart.
  bool is_strided() const { return rows.per_target != 1 || columns.per_target != 1; }
  // The u-th row's and v-th column's tap, numbered in the filter.
  int64_t tap(int64_t tap_columns, int64_t u, int64_t v) const {
    return (rows.first_tap + u * rows.tap_step) * tap_columns + columns.first_tap + v * columns.tap_step;
  }
};

// Forward there is one; backward to the data one for each pair of remainders modulo the strides.
std::vector<TargetClass> target_classes(const ConvolutionShape& shape, bool forward);

// Whether each target sees one pixel, its own, so that the images are their own rows.
bool sees_itself(const ConvolutionShape& shape);

// Writes what targets [first, first + count) of a class see: taps in their order, and of each channels
// [channel, channel + channels). Targets are numbered row by row through the images; a row of the result is `stride`
// numbers, of which those behind the last tap are left. Taps outside the image are zeros, or of bytes `outside`.
template <class T>
void copy_rows(const GroupedImages& source, const TargetClass& target, const T* data, int64_t channel, int64_t channels,
               TapRange taps, int64_t first, int64_t count, T* to, int64_t stride, uint8_t outside = 0) {
  const AxisClass& rows = target.rows;
  const AxisClass& columns = target.columns;
  const int64_t in_image = rows.targets * columns.targets;
  int64_t image = first / in_image;
  int64_t row = first % in_image / columns.targets;
  int64_t column = first % columns.targets;
  const auto bytes = [](int64_t numbers) { return static_cast<std::size_t>(numbers) * sizeof(T); };
  const auto clear = [&](T* numbers, int64_t n) { std::memset(static_cast<void*>(numbers), outside, bytes(n)); };
  // Neighbouring columns are one run in memory.
  const bool runs = columns.per_tap == 1 && channels == source.all_channels;
  for (int64_t i = 0; i < count; ++i, to += stride) {
    T* at = to;
    int64_t tap = taps.begin;
    while (tap < taps.end) {
      const int64_t u = tap / columns.taps;
      const int64_t v = tap % columns.taps;
      const int64_t n = std::min(columns.taps - v, taps.end - tap);
      const int64_t y = rows.source(row, u);
      if (y < 0 || y >= source.height) {
        clear(at, n * channels);
      } else {
        const T* line = data + ((image * source.height + y) * source.width) * source.all_channels + channel;
        if (runs) {
          const int64_t x = columns.source(column, v);
          const int64_t left = std::clamp<int64_t>(-x, 0, n);
          const int64_t right = std::clamp<int64_t>(x + n - source.width, 0, n - left);
          const int64_t inside = n - left - right;
          if (left > 0) clear(at, left * channels);
          if (inside > 0) std::memcpy(at + left * channels, line + (x + left) * channels, bytes(inside * channels));
          if (right > 0) clear(at + (n - right) * channels, right * channels);
        } else {
          for (int64_t j = 0; j < n; ++j) {
            const int64_t x = columns.source(column, v + j);
            if (x < 0 || x >= source.width) {
              clear(at + j * channels, channels);
            } else {
              std::memcpy(at + j * channels, line + x * source.all_channels, bytes(channels));
            }
          }
        }
      }
      at += n * channels;
      tap += n;
    }
    if (++column < columns.targets) continue;
    column = 0;
    if (++row < rows.targets) continue;
    row = 0;
    ++image;
  }
}

}  // namespace gpunn::cpu
