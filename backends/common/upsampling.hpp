// UPSAMPLE2D and its backward.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// The terms of an element of y along one axis: (1 - second) of element `first` of x, and `second` of the next one,
// which exists if second is not 0.
struct Taps {
  int64_t first = 0;
  float second = 0.0F;
};

// From begin to before end.
struct OutputSpan {
  int64_t begin = 0;
  int64_t end = 0;
};

struct UpsampleAxis {
  int64_t inputs = 0;
  int64_t factor = 1;
  bool bilinear = false;

  constexpr int64_t outputs() const { return inputs * factor; }

  // In whole numbers up to the one division, so that a place far from the start is as exact as the first: the place of
  // output o is (2 o + 1 - factor) / (2 factor).
  constexpr Taps taps(int64_t output) const {
    if (!bilinear) return {output / factor, 0.0F};
    const int64_t place = 2 * output + 1 - factor;
    if (place <= 0) return {0, 0.0F};
    const int64_t first = place / (2 * factor);
    if (first >= inputs - 1) return {inputs - 1, 0.0F};
    return {first, static_cast<float>(place - first * 2 * factor) / static_cast<float>(2 * factor)};
  }

  // Outputs among which all are that input i has a share in.
  constexpr OutputSpan outputs_of(int64_t i) const {
    if (!bilinear) return {i * factor, (i + 1) * factor};
    return {i == 0 ? 0 : (i - 1) * factor, i >= inputs - 2 ? outputs() : (i + 2) * factor};
  }

  // The share of input i in an output.
  constexpr float share(int64_t i, int64_t output) const {
    const Taps made = taps(output);
    if (made.first == i) return 1.0F - made.second;
    return made.first == i - 1 ? made.second : 0.0F;
  }
};

struct Upsample {
  int64_t images = 0;
  int64_t channels = 0;
  UpsampleAxis rows;
  UpsampleAxis columns;
  bool channels_last = false;  // images lie as [rows, columns, channels]

  constexpr int64_t planes() const { return images * channels; }

  constexpr int64_t input_size() const { return rows.inputs * columns.inputs; }
  constexpr int64_t output_size() const { return rows.outputs() * columns.outputs(); }
};

namespace detail {

inline Upsample upsample_from(const OpDesc& desc, const gpunn_tensor& smaller) {
  const auto attrs = desc.attrs<gpunn_upsample2d_attrs>();
  const bool bilinear = attrs.mode == GPUNN_UPSAMPLE_BILINEAR;
  return {.images = smaller.dim[0],
          .channels = smaller.dim[1],
          .rows = {.inputs = smaller.dim[2], .factor = attrs.factor[0], .bilinear = bilinear},
          .columns = {.inputs = smaller.dim[3], .factor = attrs.factor[1], .bilinear = bilinear},
          .channels_last = plugin::has_channels_last(desc)};
}

}  // namespace detail

inline Upsample upsample_of(const OpDesc& desc) { return detail::upsample_from(desc, desc.input(0)); }
inline Upsample upsample_backward_of(const OpDesc& desc) { return detail::upsample_from(desc, desc.output(0)); }

}  // namespace gpunn::backends
