// What a position of scores learns: its label, and the weights of the classes.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/class_scores.hpp"

namespace gpunn::cuda_tiled {

struct ClassTargets {
  backends::CrossEntropy entropy;
  const int32_t* label;
  const float* weight;  // null: all are 1

  __device__ __forceinline__ float weight_of(int64_t c) const { return weight != nullptr ? weight[c] : 1.0F; }
  // The label is compared with the number of classes before it is used as an address.
  __device__ __forceinline__ bool counts(int32_t named) const { return entropy.counts(named); }
  // smoothing / classes
  __device__ __forceinline__ float share() const {
    return entropy.smoothing / static_cast<float>(entropy.shape.classes);
  }
};

// A group of `width` positions of one thread. The scores of class c lie c * inner elements after those of class 0.
struct PositionGroup {
  int64_t position;
  int64_t first;  // element of x
  bool there;

  __device__ PositionGroup(const backends::ClassScores& shape, int64_t group, int width)
      : position(group * width), first(0), there(position < shape.positions()) {
    if (there) first = shape.first(position);
  }
};

// The scores of groups of positions that a thread reads before it uses them.
constexpr int kClassesAtOnce = 8;

// From here on groups of four positions fill the GPU.
constexpr int64_t kManyPositions = int64_t{1} << 17;

}  // namespace gpunn::cuda_tiled
