// Which input meets which output through which tap, along one axis, forward and backward alike.
#pragma once

#include <cstdint>
#include <vector>

#include "common/convolution.hpp"

namespace gpunn::cpu {

using backends::ConvolutionAxis;

struct TapRange {
  int64_t begin;
  int64_t end;  // equal to begin where there is none
};

// The targets first_target + j * target_step, j < targets, all of which take the source base + j * per_target +
// u * per_tap at tap first_tap + u * tap_step, u < taps. Forward the targets are outputs, and one class has them all;
// backward to the data they are inputs, in one class for each remainder modulo the stride. Sources come in their order:
// per_tap is positive.
struct AxisClass {
  int64_t first_target;
  int64_t target_step;
  int64_t targets;
  int64_t first_tap;
  int64_t tap_step;
  int64_t taps;
  int64_t base;
  int64_t per_target;
  int64_t per_tap;

  int64_t source(int64_t j, int64_t u) const { return base + j * per_target + u * per_tap; }

  // The u whose source for target j is in [low, high).
  TapRange taps_within(int64_t j, int64_t low, int64_t high) const;
};

std::vector<AxisClass> forward_classes(const ConvolutionAxis& axis);
std::vector<AxisClass> backward_classes(const ConvolutionAxis& axis);

}  // namespace gpunn::cpu
