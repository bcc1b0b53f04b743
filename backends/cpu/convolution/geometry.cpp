#include "convolution/geometry.hpp"

#include <algorithm>
#include <numeric>

namespace gpunn::cpu {
namespace {

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t ceil_divide(int64_t a, int64_t b) { return -floor_divide(-a, b); }

}  // namespace

TapRange AxisClass::taps_within(int64_t j, int64_t low, int64_t high) const {
  const int64_t at = source(j, 0);
  // low <= at + u * per_tap < high
  int64_t begin = per_tap > 0 ? ceil_divide(low - at, per_tap) : floor_divide(at - high, -per_tap) + 1;
  int64_t end = per_tap > 0 ? ceil_divide(high - at, per_tap) : floor_divide(at - low, -per_tap) + 1;
  begin = std::clamp<int64_t>(begin, 0, taps);
  end = std::clamp<int64_t>(end, begin, taps);
  return {begin, end};
}

std::vector<AxisClass> forward_classes(const ConvolutionAxis& axis) {
  return {AxisClass{.first_target = 0,
                    .target_step = 1,
                    .targets = axis.outputs,
                    .first_tap = 0,
                    .tap_step = 1,
                    .taps = axis.taps,
                    .base = -axis.pad,
                    .per_target = axis.stride,
                    .per_tap = axis.dilation}};
}

std::vector<AxisClass> backward_classes(const ConvolutionAxis& axis) {
  // Input i takes output (i + pad - t * dilation) / stride where that divides.
  const int64_t tap_step = axis.stride / std::gcd(axis.stride, axis.dilation);
  std::vector<AxisClass> classes;
  for (int64_t first = 0; first < std::min(axis.stride, axis.inputs); ++first) {
    AxisClass c{.first_target = first,
                .target_step = axis.stride,
                .targets = ceil_divide(axis.inputs - first, axis.stride),
                .first_tap = 0,
                .tap_step = tap_step,
                .taps = 0,
                .base = 0,
                .per_target = 1,
                .per_tap = -(axis.dilation * tap_step / axis.stride)};
    for (int64_t t = 0; t < std::min(tap_step, axis.taps); ++t) {
      const int64_t position = first + axis.pad - t * axis.dilation;
      if (position % axis.stride != 0) continue;
      c.first_tap = t;
      c.taps = ceil_divide(axis.taps - t, tap_step);
      c.base = position / axis.stride;
      break;
    }
    // In the order of their sources.
    if (c.taps > 0) {
      c.first_tap += (c.taps - 1) * c.tap_step;
      c.tap_step = -c.tap_step;
      c.base += (c.taps - 1) * c.per_tap;
      c.per_tap = -c.per_tap;
    }
    classes.push_back(c);
  }
  return classes;
}

}  // namespace gpunn::cpu
