#include "simd/images/upsampling.hpp"

#include "simd/lanes/vec.hpp"

namespace gpunn::cpu::GPUNN_ISA {

template <class T>
static void weighted_row(const T* x, int64_t row, const Neighbours& rows, const Neighbours* columns, int64_t n,
                         int64_t channels, T* y) {
  x += rows.first * row;
  for (int64_t q = 0; q < n; ++q, y += channels) {
    const Neighbours& column = columns[q];
    const T* corner = x + column.first * channels;
    each_vector(channels, [&](int64_t c, auto load_at, auto store_at) {
      Vec sum = zero();
      for (int64_t i = 0; i < rows.count; ++i) {
        const T* from = corner + i * row + c;
        for (int64_t j = 0; j < column.count; ++j) {
          sum += broadcast(rows.weights[i] * column.weights[j]) * load_at(from + j * channels);
        }
      }
      store_at(y + c, sum);
    });
  }
}

extern const UpsamplingKernels upsampling_kernels;
const UpsamplingKernels upsampling_kernels{weighted_row<float>, weighted_row<BFloat16>};

}  // namespace gpunn::cpu::GPUNN_ISA
