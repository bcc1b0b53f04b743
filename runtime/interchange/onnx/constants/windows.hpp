// Windows over any number of dimensions, of convolutions and poolings.
#pragma once

#include "interchange/onnx/constants/evaluator.hpp"

namespace gpunn::interchange::constants {

struct Windows {
  Shape space, kernel, stride, dilation, before, behind, output;
  std::vector<Shape> taps;  // each place in a window

  int64_t outputs() const { return element_count(output); }
  // `visit(place, tap)` for each place of the window `at` that is not padding.
  template <class Visit>
  void for_each_tap(const Shape& at, Visit visit) const {
    for (std::size_t tap = 0; tap < taps.size(); ++tap) {
      int64_t place = 0;
      bool is_inside = true;
      for (std::size_t d = 0; d < space.size(); ++d) {
        const int64_t x = coordinate(at, tap, d);
        is_inside = is_inside && x >= 0 && x < space[d];
        place = place * space[d] + x;
      }
      if (is_inside) visit(place, tap);
    }
  }
  int64_t coordinate(const Shape& at, std::size_t tap, std::size_t d) const {
    return at[d] * stride[d] - before[d] + taps[tap][d] * dilation[d];
  }
};

// Dimensions behind batch and channels. Throws Unsupported where there are none.
Shape space_of(const Shape& shape);
// Strides, gaps, padding and places in the window, but not the output. An empty kernel: the attribute says it.
Windows windows_in(Call& call, Shape space, const Shape& kernel);
// With the output of a convolution or a pooling.
Windows windows_over(Call& call, Shape space, const Shape& kernel);
// Integers of an attribute, `times` for each dimension.
Shape window_list(const Call& call, const char* name, std::size_t count, int64_t fallback, int64_t least);
// Whether the padding follows from the sizes: auto_pad SAME_UPPER or SAME_LOWER, which `is_upper` tells apart.
bool pads_to_same(const Call& call, bool& is_upper);

}  // namespace gpunn::interchange::constants
