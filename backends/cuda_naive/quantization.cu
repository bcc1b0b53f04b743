// QUANTIZE, DEQUANTIZE, FAKE_QUANTIZE, QUANTIZE_FILTER, QUANTIZED_CONV2D, QUANTIZED_LINEAR and
// QUANTIZED_GLOBAL_AVG_POOL2D, straight from the definition.
//
// In the first three one thread computes one element; they are coalesced and bound by memory. In QUANTIZE_FILTER one
// thread block handles one filter: it finds the largest weight by a tree reduction and then reads the filter again.
//
// In QUANTIZED_CONV2D and QUANTIZED_LINEAR one thread computes one element of y, and adds integers: the sum is exact in
// any order. Only the final result is rounded, in double, so that the definition alone decides ties. Tensors may be
// packed or channels-last. In packed tensors neighbouring threads read neighbouring pixels. In channels-last tensors a
// thread reads the channels of a pixel one after another, and its neighbours read a whole pixel further on. The next
// version would multiply four numbers in one instruction (__dp4a), or a whole tile on tensor cores (mma.sync of u8 and
// s8), with both operands in shared memory.
#include <cstdint>

#include "block_tree.cuh"
#include "common/convolution.hpp"
#include "common/quantization.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "cuda_common/quantization.cuh"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

constexpr int32_t kFilterZero = 128;
constexpr float kLargestWeight = 127.0F;

__device__ float meant(uint8_t q, const Quantize& by) { return (static_cast<float>(q) - by.zero_point) * by.scale; }

__global__ void quantize(const float* x, uint8_t* y, Quantize by) {
  const int64_t i = thread_index();
  if (i < by.n) y[i] = stored(x[i] / by.scale, by.zero_point);
}

__global__ void dequantize(const uint8_t* x, float* y, Quantize by) {
  const int64_t i = thread_index();
  if (i < by.n) y[i] = meant(x[i], by);
}

__global__ void fake_quantize(const float* x, float* y, Quantize by) {
  const int64_t i = thread_index();
  if (i < by.n) y[i] = meant(stored(x[i] / by.scale, by.zero_point), by);
}

void run_quantize(const Quantize& by, cudaStream_t stream, const OpArgs& args) {
  launch(quantize, thread_each(by.n), stream, args.in<float>(0), args.out<uint8_t>(0), by);
}

void run_dequantize(const Quantize& by, cudaStream_t stream, const OpArgs& args) {
  launch(dequantize, thread_each(by.n), stream, args.in<uint8_t>(0), args.out<float>(0), by);
}

void run_fake_quantize(const Quantize& by, cudaStream_t stream, const OpArgs& args) {
  launch(fake_quantize, thread_each(by.n), stream, args.in<float>(0), args.out<float>(0), by);
}

// --- QUANTIZE_FILTER ---

// Quotients are formed in double, so that no rounding decides at a tie.
__global__ void quantize_filter(const float* w, uint8_t* q, float* scales, Filters shape) {
  for (int64_t k = blockIdx.x; k < shape.filters; k += gridDim.x) {
    const float* filter = w + k * shape.size;
    float most = 0.0F;
    for (int64_t i = threadIdx.x; i < shape.size; i += blockDim.x) most = fmaxf(most, fabsf(filter[i]));  // drops a NaN
    most = block_tree(most, [](float a, float b) { return fmaxf(a, b); });
    const float scale = most > 0.0F ? static_cast<float>(static_cast<double>(most) / kLargestWeight) : 1.0F;
    for (int64_t i = threadIdx.x; i < shape.size; i += blockDim.x) {
      const double steps = static_cast<double>(filter[i]) / static_cast<double>(scale);
      q[k * shape.size + i] = stored(steps, static_cast<double>(kFilterZero));
    }
    if (threadIdx.x == 0) scales[k] = scale;
  }
}

void run_quantize_filter(const Filters& shape, cudaStream_t stream, const OpArgs& args) {
  launch(quantize_filter, tree_each(shape.filters, shape.size), stream, args.in<float>(0), args.out<uint8_t>(0),
         args.out<float>(1), shape);
}

// --- QUANTIZED_CONV2D ---

// What is between neighbours of a tensor [N,C,H,W].
struct Strides {
  int64_t image;
  int64_t channel;
  int64_t row;
  int64_t column;
};

Strides strides_of(const gpunn_tensor& tensor) {
  return {tensor.stride[0], tensor.stride[1], tensor.stride[2], tensor.stride[3]};
}

struct QuantizedConvolution {
  ConvolutionShape shape;
  Strides x;
  Strides w;
  Strides y;  // and the residual's
  gpunn_quantized_conv2d_attrs attrs;
  bool relu;
  bool residual;
};

QuantizedConvolution quantized_convolution_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_quantized_conv2d_attrs>();
  return {.shape = convolution_of(desc),
          .x = strides_of(desc.input(0)),
          .w = strides_of(desc.input(1)),
          .y = strides_of(desc.output(0)),
          .attrs = attrs,
          .relu = is_relu(attrs.activation),
          .residual = desc.inputs() > 4};
}

struct Operands {
  const uint8_t* x;
  const uint8_t* w;
  const float* scale;       // of each filter
  const float* bias;        // null: there is none
  const uint8_t* residual;  // null: there is none
};

// Padding stands for 0, so its products are left out.
__device__ int32_t sum_of_products(const Operands& in, const QuantizedConvolution& op, int64_t n, int64_t k, int64_t p,
                                   int64_t q) {
  const ConvolutionAxis &rows = op.shape.rows, &columns = op.shape.columns;
  const int64_t first_channel = k / op.shape.group_outputs * op.shape.group_inputs;
  const uint8_t* image = in.x + n * op.x.image + first_channel * op.x.channel;
  const uint8_t* filter = in.w + k * op.w.image;
  int32_t sum = 0;
  for (int64_t r = 0; r < rows.taps; ++r) {
    const int64_t row = p * rows.stride - rows.pad + r * rows.dilation;
    if (row < 0 || row >= rows.inputs) continue;
    for (int64_t s = 0; s < columns.taps; ++s) {
      const int64_t column = q * columns.stride - columns.pad + s * columns.dilation;
      if (column < 0 || column >= columns.inputs) continue;
      const uint8_t* source = image + row * op.x.row + column * op.x.column;
      const uint8_t* weight = filter + r * op.w.row + s * op.w.column;
      for (int64_t c = 0; c < op.shape.group_inputs; ++c) {
        sum += (int32_t{source[c * op.x.channel]} - op.attrs.x_zero_point) *
               (int32_t{weight[c * op.w.channel]} - kFilterZero);
      }
    }
  }
  return sum;
}

__global__ void quantized_convolution(Operands in, uint8_t* y, QuantizedConvolution op) {
  const int64_t outputs = op.shape.groups * op.shape.group_outputs;
  const int64_t rows = op.shape.rows.outputs;
  const int64_t columns = op.shape.columns.outputs;
  const int64_t i = thread_index();
  if (i >= op.shape.batch * outputs * rows * columns) return;
  const int64_t q = i % columns;
  const int64_t p = i / columns % rows;
  const int64_t k = i / columns / rows % outputs;
  const int64_t n = i / columns / rows / outputs;
  const int64_t at = n * op.y.image + k * op.y.channel + p * op.y.row + q * op.y.column;
  const int32_t sum = sum_of_products(in, op, n, k, p, q);
  double value = static_cast<double>(sum) * op.attrs.x_scale * in.scale[k] + in.bias[k];
  if (in.residual != nullptr) {
    value += (int32_t{in.residual[at]} - op.attrs.residual_zero_point) * static_cast<double>(op.attrs.residual_scale);
  }
  if (op.relu && value < 0) value = 0;  // a NaN stays one
  y[at] = stored(value / op.attrs.y_scale, static_cast<double>(op.attrs.y_zero_point));
}

void run_quantized_convolution(const QuantizedConvolution& op, cudaStream_t stream, const OpArgs& args) {
  const Operands in{.x = args.in<uint8_t>(0),
                    .w = args.in<uint8_t>(1),
                    .scale = args.in<float>(2),
                    .bias = args.in<float>(3),
                    .residual = op.residual ? args.in<uint8_t>(4) : nullptr};
  launch(quantized_convolution, thread_each(plugin::element_count(args.output(0))), stream, in, args.out<uint8_t>(0),
         op);
}

// --- QUANTIZED_LINEAR ---

// Neighbouring threads have neighbouring units, whose weights lie a row apart.
__global__ void quantized_linear(Operands in, float* y, QuantizedLinear layer) {
  const int64_t units = layer.shape.group_outputs, terms = layer.shape.group_inputs;
  const int64_t i = thread_index();
  if (i >= layer.shape.batch * units) return;
  const int64_t unit = i % units;
  const uint8_t* row = in.x + i / units * terms;
  const uint8_t* weights = in.w + unit * terms;
  int32_t sum = 0;
  for (int64_t c = 0; c < terms; ++c) {
    sum += (int32_t{row[c]} - layer.attrs.x_zero_point) * (int32_t{weights[c]} - kFilterZero);
  }
  const double bias = in.bias != nullptr ? in.bias[unit] : 0;
  y[i] = static_cast<float>(static_cast<double>(sum) * layer.attrs.x_scale * in.scale[unit] + bias);
}

void run_quantized_linear(const QuantizedLinear& layer, cudaStream_t stream, const OpArgs& args) {
  const Operands in{.x = args.in<uint8_t>(0),
                    .w = args.in<uint8_t>(1),
                    .scale = args.in<float>(2),
                    .bias = layer.bias ? args.in<float>(3) : nullptr,
                    .residual = nullptr};
  launch(quantized_linear, thread_each(layer.shape.batch * layer.shape.group_outputs), stream, in, args.out<float>(0),
         layer);
}

// --- QUANTIZED_GLOBAL_AVG_POOL2D ---

// One thread adds up a plane.
__global__ void quantized_mean(const uint8_t* x, uint8_t* y, QuantizedMean mean) {
  const int64_t plane = thread_index();
  if (plane >= mean.images * mean.channels) return;
  const int64_t image = plane / mean.channels, channel = plane % mean.channels;
  const int64_t step = mean.channels_last ? mean.channels : 1;
  x += image * mean.channels * mean.pixels + channel * (mean.channels_last ? 1 : mean.pixels);
  int32_t sum = 0;
  for (int64_t p = 0; p < mean.pixels; ++p) sum += int32_t{x[p * step]} - mean.attrs.x_zero_point;
  y[plane] = stored_mean(sum, mean);
}

void run_quantized_mean(const QuantizedMean& mean, cudaStream_t stream, const OpArgs& args) {
  launch(quantized_mean, thread_each(mean.images * mean.channels), stream, args.in<uint8_t>(0), args.out<uint8_t>(0),
         mean);
}

}  // namespace

void add_quantization_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_QUANTIZE, "quantize", quantize_of, run_quantize, Dtypes::f32, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_DEQUANTIZE, "dequantize", quantize_of, run_dequantize, Dtypes::f32,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_FAKE_QUANTIZE, "fake_quantize", quantize_of, run_fake_quantize, Dtypes::f32,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_QUANTIZE_FILTER, "quantize_filter", filters_of, run_quantize_filter);
  add_op(device, GPUNN_OP_QUANTIZED_CONV2D, "quantized_conv2d", quantized_convolution_of, run_quantized_convolution,
         Dtypes::f32, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_QUANTIZED_LINEAR, "quantized_linear", quantized_linear_of, run_quantized_linear);
  add_op(device, GPUNN_OP_QUANTIZED_GLOBAL_AVG_POOL2D, "quantized_global_avg_pool2d", quantized_mean_of,
         run_quantized_mean, Dtypes::f32, Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_naive
