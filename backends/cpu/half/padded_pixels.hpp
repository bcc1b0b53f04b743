// Channels-last images of a batch as one sequence of pixels, with zeros behind each line and below each image, as many
// as windows see beyond an edge: what is left of a line are the zeros behind the one before. A tap is then an offset in
// the sequence. Where neighbouring targets see neighbouring pixels, all targets are rows of one matrix, of which those
// that fall into the gaps are left out; with strides those of a line are.
#pragma once

#include <gpunn/float_formats.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "convolution/image_rows.hpp"

namespace gpunn::cpu {

struct PaddedPixels {
  int64_t images = 0;
  int64_t lines = 0;  // of an image
  int64_t pitch = 0;  // pixels of a line

  int64_t pixels() const { return images * lines * pitch; }
  // Where a target of an image lies.
  int64_t pixel(const TargetClass& targets, int64_t image, int64_t row, int64_t column) const {
    return (image * lines + row * targets.rows.per_target) * pitch + column * targets.columns.per_target;
  }
  // From a target to what its first tap sees.
  int64_t first_offset(const TargetClass& targets) const { return targets.rows.base * pitch + targets.columns.base; }
  // From the first tap's pixel to that of another.
  int64_t tap_offset(const TargetClass& targets, int64_t u, int64_t v) const {
    return u * targets.rows.per_tap * pitch + v * targets.columns.per_tap;
  }
  int64_t last_tap_offset(const TargetClass& targets) const {
    return tap_offset(targets, targets.rows.taps - 1, targets.columns.taps - 1);
  }

  // Calls run(image, row, column, first, count) for the runs of pixels [first, first + count) of images of height x
  // width among the pixels [begin, end), and gap(first, count) for those between them. Both count from `begin`, which
  // may be negative as pixels before the first image are.
  template <class Run, class Gap>
  void walk(int64_t height, int64_t width, int64_t begin, int64_t end, const Run& run, const Gap& gap) const {
    int64_t at = begin;
    while (at < end) {
      const int64_t line = at >= 0 ? at / pitch : -1;
      const int64_t column = at >= 0 ? at % pitch : 0;
      const int64_t next = at >= 0 ? (line + 1) * pitch : 0;
      const bool there = line >= 0 && line < images * lines && line % lines < height && column < width;
      const int64_t last = std::min(end, there ? at - column + width : next);
      if (there) {
        run(line / lines, line % lines, column, at - begin, last - at);
      } else {
        gap(at - begin, last - at);
      }
      at = last;
    }
  }

  // Pixels [begin, end) of the sequence, the channels [channel, channel + channels) of each, zeros in the gaps. A pixel
  // of the result is `stride` numbers, with zeros behind its channels up to `padded` of them.
  void copy(const GroupedImages& source, const BFloat16* data, int64_t channel, int64_t channels, int64_t begin,
            int64_t end, BFloat16* to, int64_t stride, int64_t padded) const;
};

// For the windows of a class. None where they do not overlap or their taps lie far apart, and where rows that are no
// targets cost more than copying side by side what a target sees: each is multiplied with so many channels.
std::optional<PaddedPixels> padded_pixels(const GroupedImages& source, const TargetClass& targets, int64_t batch,
                                          int64_t channels);

}  // namespace gpunn::cpu
