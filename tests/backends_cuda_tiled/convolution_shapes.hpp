// Shapes of convolutions for tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/convolution.hpp"

// x[4], filters, and of rows and columns: taps, stride, padding and dilation.
inline gpunn::backends::ConvolutionShape shape_of(std::array<int64_t, 4> x, int64_t filters,
                                                  std::array<int64_t, 2> taps, std::array<int64_t, 2> stride,
                                                  std::array<int64_t, 2> pad, std::array<int64_t, 2> dilation,
                                                  int64_t groups) {
  const auto axis = [&](std::size_t i) {
    const int64_t room = x[2 + i] + 2 * pad[i] - dilation[i] * (taps[i] - 1) - 1;
    return gpunn::backends::ConvolutionAxis{x[2 + i], room / stride[i] + 1, taps[i], stride[i], pad[i], dilation[i]};
  };
  return {x[0], groups, x[1] / groups, filters / groups, axis(0), axis(1)};
}
