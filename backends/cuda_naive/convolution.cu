// CONV2D, its two gradients, CONV2D_BIAS_ACTIVATION and CONV2D_BIAS_ADD_ACTIVATION, straight from the definition.
//
// CONV2D: one thread computes one element of y. BACKWARD_DATA: one thread computes one element of dx and gathers its
// terms from dy. Both run over the taps of the filter in the outer loops, where the thread works out once which pixel a
// tap reads. The inner loop runs over the channels, with two loads, a product and a sum. The threads of a warp compute
// neighbouring pixels of one channel. At stride 1 their loads of the image are coalesced, and the cache serves the
// shared filter element to all of them at once. At stride 2 the forward pass wastes half of each load. In the data
// gradient neighbouring pixels then meet different taps, so that a warp runs through the taps of both (divergence).
//
// BACKWARD_FILTER: one thread block computes one element of dw, since dw has few elements and each is a sum over all
// images and pixels. The block's threads read neighbouring pixels, which is coalesced again.
//
// All three load two numbers for each product, as the naive matmul does, and reach a few per cent of the GPU's
// arithmetic peak. The weight gradient reads x and dy once for each element of dw that needs them. For 64 to 64
// channels and 3x3 taps that is 576 times, from the second-level cache at best. The next version would load a tile of
// the image with its border and a tile of the filter into shared memory. Each thread would then compute a small tile of
// channels x pixels in registers. Alternatively the taps x channels can be the K of a matrix product (implicit GEMM),
// which suits tensor cores.
#include "block_tree.cuh"
#include "common/convolution.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "epilogue.cuh"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// The sizes that indices are made of.
struct Sizes {
  int64_t inputs;        // channels of x
  int64_t outputs;       // channels of y
  int64_t input_plane;   // pixels of a channel of x
  int64_t output_plane;  // pixels of a channel of y
  int64_t taps;          // of one channel of a filter

  constexpr explicit Sizes(const ConvolutionShape& s)
      : inputs(s.groups * s.group_inputs),
        outputs(s.groups * s.group_outputs),
        input_plane(s.rows.inputs * s.columns.inputs),
        output_plane(s.rows.outputs * s.columns.outputs),
        taps(s.rows.taps * s.columns.taps) {}
};

// The input that a tap of an output names; may lie outside, in the padding.
__device__ int64_t input_of(const ConvolutionAxis& axis, int64_t output, int64_t tap) {
  return output * axis.stride - axis.pad + tap * axis.dilation;
}

// The output whose tap names the input; -1 where there is none.
__device__ int64_t output_of(const ConvolutionAxis& axis, int64_t input, int64_t tap) {
  const int64_t position = input + axis.pad - tap * axis.dilation;
  if (position < 0 || position % axis.stride != 0) return -1;
  const int64_t output = position / axis.stride;
  return output < axis.outputs ? output : -1;
}

// `residual`, unless null, is added to y; it may be y's own memory.
template <class T>
__global__ void convolution(const T* x, const T* w, Epilogue epilogue, const T* residual, T* y,
                            ConvolutionShape shape) {
  const Sizes sizes(shape);
  const int64_t i = thread_index();
  if (i >= shape.batch * sizes.outputs * sizes.output_plane) return;
  const int64_t q = i % shape.columns.outputs;
  const int64_t p = i / shape.columns.outputs % shape.rows.outputs;
  const int64_t k = i / sizes.output_plane % sizes.outputs;
  const int64_t n = i / sizes.output_plane / sizes.outputs;
  const int64_t first_channel = k / shape.group_outputs * shape.group_inputs;
  const T* image = x + (n * sizes.inputs + first_channel) * sizes.input_plane;
  const T* filter = w + k * shape.group_inputs * sizes.taps;
  float sum = 0.0F;
  for (int64_t r = 0; r < shape.rows.taps; ++r) {
    const int64_t row = input_of(shape.rows, p, r);
    if (row < 0 || row >= shape.rows.inputs) continue;
    for (int64_t s = 0; s < shape.columns.taps; ++s) {
      const int64_t column = input_of(shape.columns, q, s);
      if (column < 0 || column >= shape.columns.inputs) continue;
      const T* source = image + row * shape.columns.inputs + column;
      const T* weight = filter + r * shape.columns.taps + s;
      for (int64_t c = 0; c < shape.group_inputs; ++c) {
        sum += static_cast<float>(source[c * sizes.input_plane]) * static_cast<float>(weight[c * sizes.taps]);
      }
    }
  }
  y[i] = static_cast<T>(epilogue(sum, k, residual != nullptr ? static_cast<float>(residual[i]) : 0.0F));
}

template <class T>
__global__ void backward_data(const T* dy, const T* w, T* dx, ConvolutionShape shape) {
  const Sizes sizes(shape);
  const int64_t i = thread_index();
  if (i >= shape.batch * sizes.inputs * sizes.input_plane) return;
  const int64_t column = i % shape.columns.inputs;
  const int64_t row = i / shape.columns.inputs % shape.rows.inputs;
  const int64_t channel = i / sizes.input_plane % sizes.inputs;
  const int64_t n = i / sizes.input_plane / sizes.inputs;
  const int64_t first_filter = channel / shape.group_inputs * shape.group_outputs;
  const int64_t filter_size = shape.group_inputs * sizes.taps;
  const T* gradient = dy + (n * sizes.outputs + first_filter) * sizes.output_plane;
  const T* filter = w + first_filter * filter_size + channel % shape.group_inputs * sizes.taps;
  float sum = 0.0F;
  for (int64_t r = 0; r < shape.rows.taps; ++r) {
    const int64_t p = output_of(shape.rows, row, r);
    if (p < 0) continue;
    for (int64_t s = 0; s < shape.columns.taps; ++s) {
      const int64_t q = output_of(shape.columns, column, s);
      if (q < 0) continue;
      const T* source = gradient + p * shape.columns.outputs + q;
      const T* weight = filter + r * shape.columns.taps + s;
      for (int64_t k = 0; k < shape.group_outputs; ++k) {
        sum += static_cast<float>(source[k * sizes.output_plane]) * static_cast<float>(weight[k * filter_size]);
      }
    }
  }
  dx[i] = static_cast<T>(sum);
}

// An element of [images, rows, columns].
struct Pixel {
  int64_t image;
  int64_t row;
  int64_t column;

  __device__ Pixel(int64_t index, int64_t rows, int64_t columns)
      : image(index / columns / rows), row(index / columns % rows), column(index % columns) {}

  // Adds digit by digit, with carry. A division for each step would take longer than the rest of the loop.
  __device__ void advance(const Pixel& step, int64_t rows, int64_t columns) {
    column += step.column;
    row += step.row;
    image += step.image;
    if (column >= columns) {
      column -= columns;
      ++row;
    }
    if (row >= rows) {
      row -= rows;
      ++image;
    }
  }
};

template <class T>
__global__ void backward_filter(const T* dy, const T* x, T* dw, ConvolutionShape shape) {
  const Sizes sizes(shape);
  const int64_t rows = shape.rows.outputs;
  const int64_t columns = shape.columns.outputs;
  const int64_t weights = sizes.outputs * shape.group_inputs * sizes.taps;
  const Pixel step(blockDim.x, rows, columns);
  for (int64_t i = blockIdx.x; i < weights; i += gridDim.x) {
    const int64_t s = i % shape.columns.taps;
    const int64_t r = i / shape.columns.taps % shape.rows.taps;
    const int64_t c = i / sizes.taps % shape.group_inputs;
    const int64_t k = i / sizes.taps / shape.group_inputs;
    const int64_t channel = k / shape.group_outputs * shape.group_inputs + c;
    const T* gradient = dy + k * sizes.output_plane;
    const T* image = x + channel * sizes.input_plane;
    float sum = 0.0F;
    for (Pixel at(threadIdx.x, rows, columns); at.image < shape.batch; at.advance(step, rows, columns)) {
      const int64_t row = input_of(shape.rows, at.row, r);
      const int64_t column = input_of(shape.columns, at.column, s);
      if (row < 0 || row >= shape.rows.inputs || column < 0 || column >= shape.columns.inputs) continue;
      const int64_t of_gradient = at.image * sizes.outputs * sizes.output_plane + at.row * columns + at.column;
      const int64_t of_image = at.image * sizes.inputs * sizes.input_plane + row * shape.columns.inputs + column;
      sum += static_cast<float>(gradient[of_gradient]) * static_cast<float>(image[of_image]);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) dw[i] = static_cast<T>(sum);
  }
}

template <class T>
void run_forward(const ConvolutionShape& shape, const Epilogue& epilogue, const T* residual, cudaStream_t stream,
                 const OpArgs& args) {
  const Sizes sizes(shape);
  launch(convolution<T>, thread_each(shape.batch * sizes.outputs * sizes.output_plane), stream, args.in<T>(0),
         args.in<T>(1), epilogue, residual, args.out<T>(0), shape);
}

template <class T>
void run_convolution(const ConvolutionShape& shape, cudaStream_t stream, const OpArgs& args) {
  run_forward<T>(shape, {}, nullptr, stream, args);
}

template <class T>
void run_bias_activation(const ConvolutionBiasActivation& plan, cudaStream_t stream, const OpArgs& args) {
  run_forward<T>(plan.shape, {.bias = args.in<float>(2), .relu = plan.relu}, nullptr, stream, args);
}

template <class T>
void run_bias_add_activation(const ConvolutionBiasActivation& plan, cudaStream_t stream, const OpArgs& args) {
  run_forward<T>(plan.shape, {.bias = args.in<float>(2), .relu = plan.relu}, args.in<T>(3), stream, args);
}

template <class T>
void run_backward_data(const ConvolutionShape& shape, cudaStream_t stream, const OpArgs& args) {
  const Sizes sizes(shape);
  launch(backward_data<T>, thread_each(shape.batch * sizes.inputs * sizes.input_plane), stream, args.in<T>(0),
         args.in<T>(1), args.out<T>(0), shape);
}

template <class T>
void run_backward_filter(const ConvolutionShape& shape, cudaStream_t stream, const OpArgs& args) {
  const Sizes sizes(shape);
  launch(backward_filter<T>,
         tree_each(sizes.outputs * shape.group_inputs * sizes.taps, shape.batch * sizes.output_plane, 512), stream,
         args.in<T>(0), args.in<T>(1), args.out<T>(0), shape);
}

}  // namespace

void add_convolution_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_CONV2D, "conv2d", convolution_of,
         each_floating([](auto x) { return run_convolution<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_CONV2D_BIAS_ACTIVATION, "conv2d_bias_activation", convolution_bias_activation_of,
         each_floating([](auto x) { return run_bias_activation<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION, "conv2d_bias_add_activation", convolution_bias_activation_of,
         each_floating([](auto x) { return run_bias_add_activation<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_CONV2D_BACKWARD_DATA, "conv2d_backward_data", convolution_backward_data_of,
         each_floating([](auto x) { return run_backward_data<decltype(x)>; }), Dtypes::floating);
  add_op(device, GPUNN_OP_CONV2D_BACKWARD_FILTER, "conv2d_backward_filter", convolution_backward_filter_of,
         each_floating([](auto x) { return run_backward_filter<decltype(x)>; }), Dtypes::floating);
}

}  // namespace gpunn::cuda_naive
