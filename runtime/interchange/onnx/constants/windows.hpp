// Places the windows of convolutions and poolings over any number of dimensions.
#pragma once

#include "interchange/onnx/constants/evaluator.hpp"

namespace gpunn::interchange::constants {

struct Windows {
  Shape space, kernel, stride, dilation, before, behind, output;
  std::vector<Shape> taps;  // each place in a window

  int64_t outputs() const { return element_count(output); }
  // Calls `visit(place, tap)` for each place of the window `at` that is not padding.
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

// Gives the dimensions behind batch and channels. Throws Unsupported where there are none.
Shape space_of(const Shape& shape);
// Sets all but the output. An empty kernel stands for that of the attribute.
Windows windows_in(Call& call, Shape space, const Shape& kernel);
// Sets the output of a convolution or a pooling too.
Windows windows_over(Call& call, Shape space, const Shape& kernel);
// Gives `count` integers of an attribute.
Shape window_list(const Call& call, const char* name, std::size_t count, int64_t fallback, int64_t least);
// Tells whether auto_pad is SAME_UPPER or SAME_LOWER, which `is_upper` tells apart.
bool pads_to_same(const Call& call, bool& is_upper);

}  // namespace gpunn::interchange::constants
