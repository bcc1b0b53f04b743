// The operations by which reductions combine two numbers.
#pragma once

#include <cmath>

namespace gpunn::cuda {

struct Sum {
  static __device__ float nothing() { return 0.0F; }
  __device__ float operator()(float a, float b) const { return a + b; }
};

// The maximum. fmaxf would drop a NaN.
struct Larger {
  static __device__ float nothing() { return -INFINITY; }
  __device__ float operator()(float a, float b) const { return isnan(a) || a >= b ? a : b; }
};

}  // namespace gpunn::cuda
