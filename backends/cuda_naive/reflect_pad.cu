// REFLECT_PAD2D: one thread computes one element of y. In its gradient one thread computes one element of dx: it adds
// up the elements of dy that are copies of it. A pixel in the middle of an image has one copy, a pixel near a corner up
// to nine.
//
// Both take the time of reading and writing the images, packed or channels-last.
#include "common/reflect_pad.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// Where element i of images of rows by columns lies: its image and channel, and its row and column.
struct Place {
  int64_t image, channel, row, column;
};

__device__ Place place_of(int64_t i, const ReflectPad& pad, int64_t rows, int64_t columns) {
  if (pad.channels_last) {
    const int64_t pixel = i / pad.channels;
    return {pixel / (rows * columns), i % pad.channels, pixel / columns % rows, pixel % columns};
  }
  const int64_t plane = i / (rows * columns);
  return {plane / pad.channels, plane % pad.channels, i / columns % rows, i % columns};
}

__device__ int64_t index_of(const Place& at, const ReflectPad& pad, int64_t rows, int64_t columns) {
  if (pad.channels_last) return ((at.image * rows + at.row) * columns + at.column) * pad.channels + at.channel;
  return ((at.image * pad.channels + at.channel) * rows + at.row) * columns + at.column;
}

template <class T>
__global__ void reflect_pad(const T* x, T* y, ReflectPad pad) {
  const int64_t i = thread_index();
  if (i >= pad.planes() * pad.output_size()) return;
  Place at = place_of(i, pad, pad.rows.outputs(), pad.columns.outputs());
  at.row = pad.rows.source(at.row);
  at.column = pad.columns.source(at.column);
  y[i] = x[index_of(at, pad, pad.rows.inputs, pad.columns.inputs)];
}

template <class T>
__global__ void reflect_pad_backward(const T* dy, T* dx, ReflectPad pad) {
  const int64_t i = thread_index();
  if (i >= pad.planes() * pad.input_size()) return;
  const Place at = place_of(i, pad, pad.rows.inputs, pad.columns.inputs);
  const int64_t rows[3] = {pad.rows.itself(at.row), pad.rows.in_front(at.row), pad.rows.behind(at.row)};
  const int64_t columns[3] = {pad.columns.itself(at.column), pad.columns.in_front(at.column),
                              pad.columns.behind(at.column)};
  float sum = 0.0F;
  for (const int64_t row : rows) {
    for (const int64_t column : columns) {
      if (row < 0 || column < 0) continue;
      const Place from{at.image, at.channel, row, column};
      sum += static_cast<float>(dy[index_of(from, pad, pad.rows.outputs(), pad.columns.outputs())]);
    }
  }
  dx[i] = static_cast<T>(sum);
}

template <class T>
void run_reflect_pad(const ReflectPad& pad, cudaStream_t stream, const OpArgs& args) {
  launch(reflect_pad<T>, thread_each(pad.planes() * pad.output_size()), stream, args.in<T>(0), args.out<T>(0), pad);
}

template <class T>
void run_reflect_pad_backward(const ReflectPad& pad, cudaStream_t stream, const OpArgs& args) {
  launch(reflect_pad_backward<T>, thread_each(pad.planes() * pad.input_size()), stream, args.in<T>(0), args.out<T>(0),
         pad);
}

}  // namespace

void add_reflect_pad_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_REFLECT_PAD2D, "reflect_pad2d", reflect_pad_of,
         each_floating([](auto x) { return run_reflect_pad<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_REFLECT_PAD2D_BACKWARD, "reflect_pad2d_backward", reflect_pad_backward_of,
         each_floating([](auto x) { return run_reflect_pad_backward<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_naive
