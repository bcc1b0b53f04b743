#include <gpunn/abi.h>

#include <cstdint>
#include <limits>

#include "cuda_common/launch.hpp"
#include "pooling/channels_last.cuh"

namespace gpunn::cuda_tiled::pooling_last {
namespace {

template <class T, int width, int kWindow>
__global__ void __launch_bounds__(cuda::kThreads) maximum(const T* x, T* y, Images z) {
  const int i = static_cast<int>(blockIdx.x * cuda::kThreads + threadIdx.x);
  if (i >= z.count) return;
  const Place at(z, i, width);
  const Span rows = inputs_of(z.rows, at.row);
  const Span columns = inputs_of(z.columns, at.column);
  const auto pixels = input_pixels<const T, width>(x, z, at);
  float most[width];
  const auto first = pixels.read(rows.begin, columns.begin);
#pragma unroll
  for (int k = 0; k < width; ++k) most[k] = static_cast<float>(first.values[k]);
  for_window<kWindow>(rows, columns, [&](int row, int column) {
    const auto pack = pixels.read(row, column);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const auto value = static_cast<float>(pack.values[k]);
      if (value > most[k] || isnan(value)) most[k] = value;
    }
  });
  store<T, width>(output_pixels<T, width>(y, z, at).at(at.row, at.column), most);
}

template <class T, int width, int kWindow>
__global__ void __launch_bounds__(cuda::kThreads) mean(const T* x, T* y, Images z) {
  const int i = static_cast<int>(blockIdx.x * cuda::kThreads + threadIdx.x);
  if (i >= z.count) return;
  const Place at(z, i, width);
  const Span rows = inputs_of(z.rows, at.row);
  const Span columns = inputs_of(z.columns, at.column);
  const auto pixels = input_pixels<const T, width>(x, z, at);
  float sum[width] = {};
  for_window<kWindow>(rows, columns, [&](int row, int column) {
    const auto pack = pixels.read(row, column);
#pragma unroll
    for (int k = 0; k < width; ++k) sum[k] += static_cast<float>(pack.values[k]);
  });
  const float divisor = z.divisor(rows, columns);
#pragma unroll
  for (int k = 0; k < width; ++k) sum[k] /= divisor;
  store<T, width>(output_pixels<T, width>(y, z, at).at(at.row, at.column), sum);
}

template <class T, int width>
__global__ void __launch_bounds__(cuda::kThreads) mean_backward(const T* dy, T* dx, Images z) {
  const int i = static_cast<int>(blockIdx.x * cuda::kThreads + threadIdx.x);
  if (i >= z.count) return;
  const Place at(z, i, width);
  const Span p = outputs_of(z.rows, at.row);
  const Span q = outputs_of(z.columns, at.column);
  const auto gradients = output_pixels<const T, width>(dy, z, at);
  float sum[width] = {};
  for (int window_row = p.begin; window_row < p.end; ++window_row) {
    for (int window_column = q.begin; window_column < q.end; ++window_column) {
      const auto gradient = gradients.read(window_row, window_column);
      const float divisor = z.divisor(inputs_of(z.rows, window_row), inputs_of(z.columns, window_column));
#pragma unroll
      for (int k = 0; k < width; ++k) sum[k] += static_cast<float>(gradient.values[k]) / divisor;
    }
  }
  store<T, width>(input_pixels<T, width>(dx, z, at).at(at.row, at.column), sum);
}

cuda::Launch threads_of(const Images& z) { return cuda::thread_each(z.count); }

}  // namespace

void require_served(const Pool& pool) {
  const double most =
      static_cast<double>(pool.planes) * static_cast<double>(std::max(pool.input_size(), pool.output_size()));
  backends::require(most < std::numeric_limits<int32_t>::max(), "the tensor has more than 2^31 elements");
}

void run_maximum(const Pool& pool, int32_t dtype, const void* x, void* y, cudaStream_t stream) {
  with_packs(pool, dtype, [&](auto type, auto number) {
    using T = decltype(type);
    constexpr int width = decltype(number)::value;
    const Images z(pool, width, false);
    const auto kernel = is_square(pool, 3)   ? maximum<T, width, 3>
                        : is_square(pool, 2) ? maximum<T, width, 2>
                                             : maximum<T, width, 0>;
    cuda::launch(kernel, threads_of(z), stream, static_cast<const T*>(x), static_cast<T*>(y), z);
  });
}

void run_mean(const Pool& pool, int32_t dtype, const void* x, void* y, cudaStream_t stream) {
  with_packs(pool, dtype, [&](auto type, auto number) {
    using T = decltype(type);
    constexpr int width = decltype(number)::value;
    const Images z(pool, width, false);
    const auto kernel = is_square(pool, 2) ? mean<T, width, 2> : mean<T, width, 0>;
    cuda::launch(kernel, threads_of(z), stream, static_cast<const T*>(x), static_cast<T*>(y), z);
  });
}

void run_mean_backward(const Pool& pool, int32_t dtype, const void* dy, void* dx, cudaStream_t stream) {
  with_packs(pool, dtype, [&](auto type, auto number) {
    using T = decltype(type);
    constexpr int width = decltype(number)::value;
    const Images z(pool, width, true);
    cuda::launch(mean_backward<T, width>, threads_of(z), stream, static_cast<const T*>(dy), static_cast<T*>(dx), z);
  });
}

}  // namespace gpunn::cuda_tiled::pooling_last
