// MAX_POOL2D, QUANTIZED_MAX_POOL2D and AVG_POOL2D: one thread computes one element of y. Their gradients: one thread
// computes one element of dx.
//
// In the forward pass neighbouring threads compute neighbouring windows. At stride 2 a warp's loads cover 256 bytes and
// use half of them. The next column of the window uses the other half, from the cache. The time is near that of moving
// x and y once.
//
// In the backward pass each window could add its gradient to the pixel of its maximum. But windows overlap, and
// atomicAdd would add in a different order in each run. So each pixel checks whether it is the maximum of the windows
// that contain it. No two threads write the same place, and dx need not be cleared first. Most pixels differ from the
// maximum, which one comparison shows. The others check the window's earlier pixels, since the first of equal pixels
// wins.
//
// For channels-last images only the address of an element differs. Threads are numbered in the order of the memory that
// they write, so that neighbouring threads write neighbours in either layout.
//
// The gradient of the mean visits the same windows and adds their shares, without a comparison.
//
// If the window is the whole image, as at the end of a residual network, each thread adds up H * W numbers.
// Neighbouring threads read H * W floats apart, so nothing is coalesced. Each line is fetched once and then serves 32
// additions from the cache. Some ten thousand channels in a batch still fill the device. The backward pass reads one
// number for each image and writes at the speed of memory.
//
// In the next version the forward pass would store the position of each maximum in a byte, so that the backward pass
// reads neither x nor y. A warp would compute the mean of a whole image, reading 32 neighbours at a time.
#include "common/pooling.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// An element of x or y.
struct Element {
  int64_t plane;
  int64_t row;
  int64_t column;
};

// The element of that place in memory, of images of that size.
__device__ Element element_at(const Pool& pool, int64_t i, int64_t rows, int64_t columns) {
  if (!pool.channels_last) return {i / (rows * columns), i / columns % rows, i % columns};
  const int64_t pixel = i / pool.channels;
  const int64_t image = pixel / (rows * columns);
  return {image * pool.channels + i % pool.channels, pixel / columns % rows, pixel % columns};
}

// Where pixels of one plane lie.
struct Plane {
  int64_t first;
  int64_t step;
  int64_t columns;
  __device__ int64_t at(int64_t row, int64_t column) const { return first + (row * columns + column) * step; }
};

__device__ Plane plane_of(const Pool& pool, int64_t plane, int64_t rows, int64_t columns) {
  if (!pool.channels_last) return {plane * rows * columns, 1, columns};
  return {plane / pool.channels * rows * columns * pool.channels + plane % pool.channels, pool.channels, columns};
}

__device__ Element input_at(const Pool& pool, int64_t i) {
  return element_at(pool, i, pool.rows.inputs, pool.columns.inputs);
}
__device__ Element output_at(const Pool& pool, int64_t i) {
  return element_at(pool, i, pool.rows.outputs, pool.columns.outputs);
}
__device__ Plane inputs_of(const Pool& pool, int64_t plane) {
  return plane_of(pool, plane, pool.rows.inputs, pool.columns.inputs);
}
__device__ Plane outputs_of(const Pool& pool, int64_t plane) {
  return plane_of(pool, plane, pool.rows.outputs, pool.columns.outputs);
}

// From begin to before end.
struct Span {
  int64_t begin;
  int64_t end;
};

// The part of a window that is inside the image.
__device__ Span inputs_of(const PoolAxis& axis, int64_t output) {
  const int64_t begin = output * axis.stride - axis.pad;
  const int64_t end = begin + axis.window;
  return {begin > 0 ? begin : 0, end < axis.inputs ? end : axis.inputs};
}

// The windows that hold an input. There may be none, where the stride is larger than the window.
__device__ Span outputs_of(const PoolAxis& axis, int64_t input) {
  const int64_t last = (input + axis.pad) / axis.stride;
  const int64_t before = input + axis.pad - axis.window;  // the last place at which a window begins too early
  return {before < 0 ? 0 : before / axis.stride + 1, last < axis.outputs ? last + 1 : axis.outputs};
}

template <class T>
__global__ void max_pool(const T* x, T* y, Pool pool) {
  const int64_t i = thread_index();
  if (i >= pool.planes * pool.output_size()) return;
  const Element element = output_at(pool, i);
  const Span rows = inputs_of(pool.rows, element.row);
  const Span columns = inputs_of(pool.columns, element.column);
  const Plane plane = inputs_of(pool, element.plane);
  auto most = static_cast<float>(x[plane.at(rows.begin, columns.begin)]);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t column = columns.begin; column < columns.end; ++column) {
      const auto value = static_cast<float>(x[plane.at(row, column)]);
      if (value > most || isnan(value)) most = value;
    }
  }
  y[i] = static_cast<T>(most);
}

// Whether this may be where the window's maximum y comes from. A NaN wins its window.
__device__ bool is_maximum(float x, float y) { return x == y || isnan(x); }

// Whether no pixel of the window that comes before this one, in row-major order, is its maximum.
template <class T>
__device__ bool is_first(const T* x, const Plane& plane, const Span& rows, const Span& columns, int64_t row,
                         int64_t column, float y) {
  for (int64_t r = rows.begin; r <= row; ++r) {
    const int64_t end = r < row ? columns.end : column;
    for (int64_t c = columns.begin; c < end; ++c) {
      if (is_maximum(static_cast<float>(x[plane.at(r, c)]), y)) return false;
    }
  }
  return true;
}

template <class T>
__global__ void max_pool_backward(const T* dy, const T* x, const T* y, T* dx, Pool pool) {
  const int64_t i = thread_index();
  if (i >= pool.planes * pool.input_size()) return;
  const Element element = input_at(pool, i);
  const Span p = outputs_of(pool.rows, element.row);
  const Span q = outputs_of(pool.columns, element.column);
  const Plane image = inputs_of(pool, element.plane);
  const Plane windows = outputs_of(pool, element.plane);
  float sum = 0.0F;
  for (int64_t window_row = p.begin; window_row < p.end; ++window_row) {
    for (int64_t window_column = q.begin; window_column < q.end; ++window_column) {
      const int64_t output = windows.at(window_row, window_column);
      const auto most = static_cast<float>(y[output]);
      if (!is_maximum(static_cast<float>(x[i]), most)) continue;
      const Span rows = inputs_of(pool.rows, window_row);
      const Span columns = inputs_of(pool.columns, window_column);
      if (is_first(x, image, rows, columns, element.row, element.column, most)) sum += static_cast<float>(dy[output]);
    }
  }
  dx[i] = static_cast<T>(sum);
}

// What the sum of a window is divided by.
__device__ float divisor(const Pool& pool, const Span& rows, const Span& columns) {
  const int64_t count = pool.count_padding ? pool.rows.window * pool.columns.window
                                           : (rows.end - rows.begin) * (columns.end - columns.begin);
  return static_cast<float>(count);
}

template <class T>
__global__ void avg_pool(const T* x, T* y, Pool pool) {
  const int64_t i = thread_index();
  if (i >= pool.planes * pool.output_size()) return;
  const Element element = output_at(pool, i);
  const Span rows = inputs_of(pool.rows, element.row);
  const Span columns = inputs_of(pool.columns, element.column);
  const Plane plane = inputs_of(pool, element.plane);
  float sum = 0.0F;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t column = columns.begin; column < columns.end; ++column) {
      sum += static_cast<float>(x[plane.at(row, column)]);
    }
  }
  y[i] = static_cast<T>(sum / divisor(pool, rows, columns));
}

template <class T>
__global__ void avg_pool_backward(const T* dy, T* dx, Pool pool) {
  const int64_t i = thread_index();
  if (i >= pool.planes * pool.input_size()) return;
  const Element element = input_at(pool, i);
  const Span p = outputs_of(pool.rows, element.row);
  const Span q = outputs_of(pool.columns, element.column);
  const Plane windows = outputs_of(pool, element.plane);
  float sum = 0.0F;
  for (int64_t row = p.begin; row < p.end; ++row) {
    const Span rows = inputs_of(pool.rows, row);
    for (int64_t column = q.begin; column < q.end; ++column) {
      sum += static_cast<float>(dy[windows.at(row, column)]) / divisor(pool, rows, inputs_of(pool.columns, column));
    }
  }
  dx[i] = static_cast<T>(sum);
}

template <class T>
void run_pooling(const Pool& pool, cudaStream_t stream, const OpArgs& args) {
  launch(max_pool<T>, thread_each(pool.planes * pool.output_size()), stream, args.in<T>(0), args.out<T>(0), pool);
}

template <class T>
void run_pooling_backward(const Pool& pool, cudaStream_t stream, const OpArgs& args) {
  launch(max_pool_backward<T>, thread_each(pool.planes * pool.input_size()), stream, args.in<T>(0), args.in<T>(1),
         args.in<T>(2), args.out<T>(0), pool);
}

template <class T>
void run_average(const Pool& pool, cudaStream_t stream, const OpArgs& args) {
  launch(avg_pool<T>, thread_each(pool.planes * pool.output_size()), stream, args.in<T>(0), args.out<T>(0), pool);
}

template <class T>
void run_average_backward(const Pool& pool, cudaStream_t stream, const OpArgs& args) {
  launch(avg_pool_backward<T>, thread_each(pool.planes * pool.input_size()), stream, args.in<T>(0), args.out<T>(0),
         pool);
}

}  // namespace

void add_pooling_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_MAX_POOL2D, "max_pool2d", max_pool_of,
         each_floating([](auto x) { return run_pooling<decltype(x)>; }), Dtypes::floating, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_MAX_POOL2D_BACKWARD, "max_pool2d_backward", max_pool_backward_of,
         each_floating([](auto x) { return run_pooling_backward<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_QUANTIZED_MAX_POOL2D, "quantized_max_pool2d", max_pool_of, run_pooling<uint8_t>, Dtypes::f32,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_AVG_POOL2D, "avg_pool2d", avg_pool_of,
         each_floating([](auto x) { return run_average<decltype(x)>; }), Dtypes::floating, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_AVG_POOL2D_BACKWARD, "avg_pool2d_backward", avg_pool_backward_of,
         each_floating([](auto x) { return run_average_backward<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_naive
