// REFLECT_PAD2D and its gradient.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

// One axis: pads `inputs` elements with `before` elements in front and `after` elements behind, mirrored at the first
// and the last input.
struct ReflectAxis {
  int64_t inputs = 0;
  int64_t before = 0;
  int64_t after = 0;

  constexpr int64_t outputs() const { return before + inputs + after; }

  // The input element that an output is a copy of.
  constexpr int64_t source(int64_t output) const {
    const int64_t place = output < before ? before - output : output - before;
    return place < inputs ? place : 2 * (inputs - 1) - place;
  }

  // The outputs that are copies of input i: in the middle, in front of the first input, and behind the last. -1: none.
  constexpr int64_t itself(int64_t i) const { return before + i; }
  constexpr int64_t in_front(int64_t i) const { return i >= 1 && i <= before ? before - i : -1; }
  constexpr int64_t behind(int64_t i) const {
    return i < inputs - 1 && i >= inputs - 1 - after ? before + 2 * (inputs - 1) - i : -1;
  }
};

struct ReflectPad {
  int64_t images = 0;
  int64_t channels = 0;
  ReflectAxis rows;
  ReflectAxis columns;
  bool channels_last = false;  // images lie as [rows, columns, channels]

  constexpr int64_t planes() const { return images * channels; }
  constexpr int64_t input_size() const { return rows.inputs * columns.inputs; }
  constexpr int64_t output_size() const { return rows.outputs() * columns.outputs(); }
};

namespace detail {

inline ReflectPad reflect_pad_from(const OpDesc& desc, const gpunn_tensor& smaller) {
  const auto attrs = desc.attrs<gpunn_reflect_pad2d_attrs>();
  return {.images = smaller.dim[0],
          .channels = smaller.dim[1],
          .rows = {.inputs = smaller.dim[2], .before = attrs.before[0], .after = attrs.after[0]},
          .columns = {.inputs = smaller.dim[3], .before = attrs.before[1], .after = attrs.after[1]},
          .channels_last = plugin::has_channels_last(desc)};
}

}  // namespace detail

inline ReflectPad reflect_pad_of(const OpDesc& desc) { return detail::reflect_pad_from(desc, desc.input(0)); }
inline ReflectPad reflect_pad_backward_of(const OpDesc& desc) { return detail::reflect_pad_from(desc, desc.output(0)); }

}  // namespace gpunn::backends
