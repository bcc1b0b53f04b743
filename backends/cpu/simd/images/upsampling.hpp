// Channels-last images of which each pixel is a weighted sum of the pixels of a rectangle.
#pragma once

#include <gpunn/float_formats.hpp>

#include <cstdint>
#include <type_traits>

#include "isa.hpp"

namespace gpunn::cpu {

// Neighbours along one axis and their weights.
struct Neighbours {
  int64_t first;
  int64_t count;
  const float* weights;
};

// A row of pixels: y[q] = sum of row weight * column weight * x over the row's neighbours and those of column q. `row`
// is the distance of x's rows in elements.
template <class T>
using WeightedRow = void (*)(const T* x, int64_t row, const Neighbours& rows, const Neighbours* columns, int64_t n,
                             int64_t channels, T* y);

struct UpsamplingKernels {
  WeightedRow<float> f32;
  WeightedRow<BFloat16> bf16;

  template <class T>
  WeightedRow<T> row() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else {
      return bf16;
    }
  }
};

GPUNN_DECLARE_ISA_VARIANTS(UpsamplingKernels, upsampling_kernels);

}  // namespace gpunn::cpu
