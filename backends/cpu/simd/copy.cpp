#include "simd/copy.hpp"

#include <cstddef>

#include "simd/lanes/vec.hpp"

namespace gpunn::cpu::GPUNN_ISA {

// Rows of at least `size` bytes, piece by piece of so many. The last piece ends with the row and may overlap the one
// before it.
template <std::size_t size>
static void copy_pieces(const char* x, int64_t x_step, char* y, int64_t y_step, int64_t rows, int64_t bytes) {
  constexpr auto kSize = static_cast<int64_t>(size);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i + kSize <= bytes; i += kSize) __builtin_memcpy(y + i, x + i, size);
    __builtin_memcpy(y + bytes - kSize, x + bytes - kSize, size);
    x += x_step;
    y += y_step;
  }
}

static void copy_rows(const char* x, int64_t x_step, char* y, int64_t y_step, int64_t rows, int64_t bytes) {
  constexpr int64_t kVectorBytes = kLanes * static_cast<int64_t>(sizeof(float));
  const auto run = bytes >= kVectorBytes ? copy_pieces<kVectorBytes>
                   : bytes >= 16         ? copy_pieces<16>
                   : bytes >= 4          ? copy_pieces<4>
                                         : copy_pieces<1>;
  run(x, x_step, y, y_step, rows, bytes);
}

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

constinit const CopyKernels copy_kernels{copy_rows, copy_transposed<float, float>, copy_transposed<float, BFloat16>,
                                         copy_transposed<BFloat16, float>, copy_transposed<BFloat16, BFloat16>};

}  // namespace gpunn::cpu::GPUNN_ISA
