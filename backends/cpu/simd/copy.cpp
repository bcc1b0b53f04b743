#include "simd/copy.hpp"

#include "simd/vec.hpp"

namespace gpunn::cpu::GPUNN_ISA {

template <bool whole, class From, class To>
static GPUNN_ALWAYS_INLINE void transpose_tile(const From* x, int64_t x_stride, To* y, int64_t y_stride, int rows,
                                               int columns) {
  Vec lines[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if constexpr (whole) {
      lines[i] = load(x + i * x_stride);
    } else {
      lines[i] = i < rows ? load_first(x + i * x_stride, columns) : zero();
    }
  }
  transpose(lines);
#pragma GCC unroll 16
  for (int j = 0; j < kLanes; ++j) {
    if constexpr (whole) {
      store(y + j * y_stride, lines[j]);
    } else if (j < columns) {
      store_first(y + j * y_stride, lines[j], rows);
    }
  }
}

template <class From, class To>
static void copy_transposed(const void* from, int64_t x_stride, void* to, int64_t y_stride, int64_t rows,
                            int64_t columns) {
  for (int64_t j = 0; j < columns; j += kLanes) {
    const int right = columns - j < kLanes ? static_cast<int>(columns - j) : kLanes;
    for (int64_t i = 0; i < rows; i += kLanes) {
      const int below = rows - i < kLanes ? static_cast<int>(rows - i) : kLanes;
      const From* x = static_cast<const From*>(from) + i * x_stride + j;
      To* y = static_cast<To*>(to) + j * y_stride + i;
      if (right == kLanes && below == kLanes) {
        transpose_tile<true>(x, x_stride, y, y_stride, kLanes, kLanes);
      } else {
        transpose_tile<false>(x, x_stride, y, y_stride, below, right);
      }
    }
  }
}

constinit const CopyKernels copy_kernels{copy_transposed<float, float>, copy_transposed<float, BFloat16>,
                                         copy_transposed<BFloat16, float>, copy_transposed<BFloat16, BFloat16>};

}  // namespace gpunn::cpu::GPUNN_ISA
