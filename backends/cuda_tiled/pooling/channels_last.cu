// A thread has up to 16 bytes of neighbouring channels of one pixel, so that neighbouring threads read and write
// neighbouring memory whatever the window. Windows overlap in the cache.
//
// The maximum's backward asks, for each window that holds the pixel, whether the pixel is equal to the window's
// maximum y. Only then it looks at the window's pixels before it, since of equal ones the first wins. No two threads
// write the same place, so the sums have one order.
#include <gpunn/abi.h>

#include <cstdint>
#include <limits>

#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "divider.cuh"
#include "pack.cuh"
#include "pooling/channels_last.hpp"

namespace gpunn::cuda_tiled::pooling_last {
namespace {

using backends::Pool;
using backends::PoolAxis;

struct Axis {
  int inputs, outputs, window, stride, pad;

  explicit Axis(const PoolAxis& axis)
      : inputs(static_cast<int>(axis.inputs)),
        outputs(static_cast<int>(axis.outputs)),
        window(static_cast<int>(axis.window)),
        stride(static_cast<int>(axis.stride)),
        pad(static_cast<int>(axis.pad)) {}
};

// From begin to before end.
struct Span {
  int begin, end;
};

// The part of a window that is inside the image.
__device__ Span inputs_of(const Axis& axis, int output) {
  const int begin = output * axis.stride - axis.pad;
  return {max(begin, 0), min(begin + axis.window, axis.inputs)};
}

// The windows that hold an input. There may be none, where the stride is larger than the window.
__device__ Span outputs_of(const Axis& axis, int input) {
  const int before = input + axis.pad - axis.window;  // the last place at which a window begins too early
  return {before < 0 ? 0 : before / axis.stride + 1, min((input + axis.pad) / axis.stride + 1, axis.outputs)};
}

struct Images {
  Axis rows, columns;
  int channels;
  int packs;  // of a pixel
  int count;  // of threads
  bool count_padding;
  Divider by_packs, by_columns, by_rows;  // of what the threads are numbered by, inputs or outputs

  Images(const Pool& pool, int width, bool by_inputs)
      : rows(pool.rows),
        columns(pool.columns),
        channels(static_cast<int>(pool.channels)),
        packs(static_cast<int>(pool.channels / width)),
        count(static_cast<int>(pool.planes / width * (by_inputs ? pool.input_size() : pool.output_size()))),
        count_padding(pool.count_padding),
        by_packs(pool.channels / width),
        by_columns(by_inputs ? pool.columns.inputs : pool.columns.outputs),
        by_rows(by_inputs ? pool.rows.inputs : pool.rows.outputs) {}

  // What a window's sum is divided by.
  __device__ float divisor(const Span& r, const Span& c) const {
    return static_cast<float>(count_padding ? rows.window * columns.window : (r.end - r.begin) * (c.end - c.begin));
  }
};

// The pixel of a thread, and its first channel.
struct Place {
  int image, row, column, channel;

  __device__ Place(const Images& z, int i, int width) {
    const auto [pixel, pack] = z.by_packs(i);
    const auto [line, at_column] = z.by_columns(pixel);
    const auto [at_image, at_row] = z.by_rows(line);
    image = at_image;
    row = at_row;
    column = at_column;
    channel = pack * width;
  }
};

// Pixels of one image, at the thread's channels.
template <class T, int width>
struct Pixels {
  T* first;
  int columns, channels;

  __device__ Pixels(T* images, const Images& z, const Place& at, const Axis& rows, const Axis& columns_axis,
                    bool inputs)
      : columns(inputs ? columns_axis.inputs : columns_axis.outputs), channels(z.channels) {
    const int lines = inputs ? rows.inputs : rows.outputs;
    first = images + static_cast<int64_t>(at.image) * lines * columns * channels + at.channel;
  }
  __device__ T* at(int row, int column) const { return first + (row * columns + column) * channels; }
  __device__ Pack<T, width> read(int row, int column) const {
    return *reinterpret_cast<const Pack<T, width>*>(at(row, column));
  }
};

template <class T, int width>
__device__ Pixels<T, width> input_pixels(T* images, const Images& z, const Place& at) {
  return {images, z, at, z.rows, z.columns, true};
}
template <class T, int width>
__device__ Pixels<T, width> output_pixels(T* images, const Images& z, const Place& at) {
  return {images, z, at, z.rows, z.columns, false};
}

template <class T, int width>
__device__ void store(T* to, const float (&values)[width]) {
  Pack<T, width> pack;
#pragma unroll
  for (int k = 0; k < width; ++k) pack.values[k] = static_cast<T>(values[k]);
  *reinterpret_cast<Pack<T, width>*>(to) = pack;
}

// Calls visit(row, column) for the window's pixels inside the image, in row-major order. A window of kWindow columns is
// unrolled, so that its loads are under way together; 0: of any size.
template <int kWindow, class Visit>
__device__ __forceinline__ void for_window(const Span& rows, const Span& columns, const Visit& visit) {
  if constexpr (kWindow > 0) {
#pragma unroll
    for (int r = 0; r < kWindow; ++r) {
#pragma unroll
      for (int c = 0; c < kWindow; ++c) {
        if (rows.begin + r < rows.end && columns.begin + c < columns.end) visit(rows.begin + r, columns.begin + c);
      }
    }
  } else {
    for (int row = rows.begin; row < rows.end; ++row) {
#pragma unroll 4
      for (int column = columns.begin; column < columns.end; ++column) visit(row, column);
    }
  }
}

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

// Whether this may be where the window's maximum y comes from. A NaN wins its window.
__device__ bool is_maximum(float x, float y) { return x == y || isnan(x); }

template <class T, int width>
__global__ void __launch_bounds__(cuda::kThreads)
    maximum_backward(const T* dy, const T* x, const T* y, T* dx, Images z) {
  const int i = static_cast<int>(blockIdx.x * cuda::kThreads + threadIdx.x);
  if (i >= z.count) return;
  const Place at(z, i, width);
  const Span p = outputs_of(z.rows, at.row);
  const Span q = outputs_of(z.columns, at.column);
  const auto pixels = input_pixels<const T, width>(x, z, at);
  const auto maxima = output_pixels<const T, width>(y, z, at);
  const auto gradients = output_pixels<const T, width>(dy, z, at);
  const auto mine = pixels.read(at.row, at.column);
  float sum[width] = {};
  for (int window_row = p.begin; window_row < p.end; ++window_row) {
    for (int window_column = q.begin; window_column < q.end; ++window_column) {
      const auto most = maxima.read(window_row, window_column);
      const auto gradient = gradients.read(window_row, window_column);
      unsigned wins = 0;  // a bit a channel
#pragma unroll
      for (int k = 0; k < width; ++k) {
        if (is_maximum(static_cast<float>(mine.values[k]), static_cast<float>(most.values[k]))) wins |= 1U << k;
      }
      const Span rows = inputs_of(z.rows, window_row);
      const Span columns = inputs_of(z.columns, window_column);
      for (int row = rows.begin; row <= at.row && wins != 0; ++row) {
        const int end = row < at.row ? columns.end : at.column;
        for (int column = columns.begin; column < end && wins != 0; ++column) {
          const auto before = pixels.read(row, column);
#pragma unroll
          for (int k = 0; k < width; ++k) {
            if (is_maximum(static_cast<float>(before.values[k]), static_cast<float>(most.values[k]))) {
              wins &= ~(1U << k);
            }
          }
        }
      }
#pragma unroll
      for (int k = 0; k < width; ++k) {
        if ((wins >> k & 1U) != 0) sum[k] += static_cast<float>(gradient.values[k]);
      }
    }
  }
  store<T, width>(input_pixels<T, width>(dx, z, at).at(at.row, at.column), sum);
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

template <int n>
struct Number {
  static constexpr int value = n;
};

// launch(T(), width) for the widest packs of channels that all pixels have at aligned addresses.
template <class Launch>
void with_packs(const Pool& pool, int32_t dtype, const Launch& launch) {
  const auto widths = [&](auto type) {
    constexpr int kWidest = 16 / sizeof(type);
    if (pool.channels % kWidest == 0) return launch(type, Number<kWidest>());
    if (pool.channels % 2 == 0) return launch(type, Number<2>());
    launch(type, Number<1>());
  };
  if (dtype == GPUNN_BF16) return widths(__nv_bfloat16());
  if (dtype == GPUNN_F16) return widths(__half());
  widths(float());
}

bool is_square(const Pool& pool, int64_t window) { return pool.rows.window == window && pool.columns.window == window; }

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

void run_maximum_backward(const Pool& pool, int32_t dtype, const void* dy, const void* x, const void* y, void* dx,
                          cudaStream_t stream) {
  with_packs(pool, dtype, [&](auto type, auto number) {
    using T = decltype(type);
    constexpr int width = decltype(number)::value;
    const Images z(pool, width, true);
    cuda::launch(maximum_backward<T, width>, threads_of(z), stream, static_cast<const T*>(dy), static_cast<const T*>(x),
                 static_cast<const T*>(y), static_cast<T*>(dx), z);
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
