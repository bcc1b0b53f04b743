// Helpers of the channels-last pooling kernels: the position of each thread in the images, and loops over windows.
//
// A thread handles up to 16 bytes of neighbouring channels of one pixel, so that neighbouring threads read and write
// neighbouring memory for any window. Where windows overlap, the cache serves the repeated reads.
#pragma once

#include <gpunn/abi.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cuda_common/floating.hpp"
#include "divider.cuh"
#include "pack.cuh"
#include "pooling/channels_last.hpp"

namespace gpunn::cuda_tiled::pooling_last {

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
__device__ __forceinline__ Span inputs_of(const Axis& axis, int output) {
  const int begin = output * axis.stride - axis.pad;
  return {max(begin, 0), min(begin + axis.window, axis.inputs)};
}

// The windows that hold an input. There may be none, where the stride is larger than the window.
__device__ __forceinline__ Span outputs_of(const Axis& axis, int input) {
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

  // The divisor of a window's sum.
  __device__ float divisor(const Span& r, const Span& c) const {
    return static_cast<float>(count_padding ? rows.window * columns.window : (r.end - r.begin) * (c.end - c.begin));
  }
};

// The pixel of a thread, and its first channel.
struct Place {
  int image, row, column, channel;

  __device__ Place(int of_image, int of_row, int of_column, int of_channel)
      : image(of_image), row(of_row), column(of_column), channel(of_channel) {}
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
  using Read = Pack<std::remove_const_t<T>, width>;
  __device__ Read read(int row, int column) const { return *reinterpret_cast<const Read*>(at(row, column)); }
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

inline bool is_square(const Pool& pool, int64_t window) {
  return pool.rows.window == window && pool.columns.window == window;
}

}  // namespace gpunn::cuda_tiled::pooling_last
