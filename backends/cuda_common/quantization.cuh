// How numbers become eight bits on CUDA devices: every backend rounds alike.
#pragma once

#include <cstdint>

#include "common/quantization.hpp"

namespace gpunn::cuda {

// round(steps) + zero_point, cut to [0, 255]; 0 for a NaN. rint rounds ties to even.
template <class Real>
__device__ __forceinline__ uint8_t stored(Real steps, Real zero_point) {
  constexpr Real kMost = 255;
  const Real whole = rint(steps) + zero_point;
  if (!(whole > 0)) return 0;
  return static_cast<uint8_t>(whole < kMost ? whole : kMost);
}

// The mean of a plane whose numbers, less their zero point, add up to `sum`. In double, so that the definition alone
// decides ties.
__device__ __forceinline__ uint8_t stored_mean(int32_t sum, const backends::QuantizedMean& mean) {
  const double average = static_cast<double>(sum) * mean.attrs.x_scale / static_cast<double>(mean.pixels);
  return stored(average / mean.attrs.y_scale, static_cast<double>(mean.attrs.y_zero_point));
}

}  // namespace gpunn::cuda
