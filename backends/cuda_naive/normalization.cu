// BATCH_NORM and its gradient: one thread block computes one channel. BATCH_NORM_INFERENCE: one thread computes one
// element.
//
// The block of a channel reads the channel three times: for the mean, for the squared differences from it, and to write
// y. The mean square minus the squared mean would save a pass, but it loses every digit that the two have in common. It
// loses all digits if the mean is a thousand deviations. The gradient reads the channel twice: for the sums of dy and
// of dy (x - mean), and to write dx.
//
// Reads of [N,C,H,W] are coalesced, since a channel is N runs of H x W elements. In [N,C] and in channels-last images
// neighbours lie C elements apart, so that each thread fetches 32 bytes from memory and uses 4. Worse, only as many
// blocks work as there are channels: 64 in a wide layer, while the GPU needs a thousand. Each block also waits for its
// loads repeatedly. The next version would split a channel over several blocks and combine their means and sums of
// squares in a second pass (Chan, Golub and LeVeque, 1983). It would write y with all threads of the GPU and load four
// elements at a time.
#include <algorithm>
#include <cstdint>

#include "block_tree.cuh"
#include "common/normalization.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// How many rows enter the statistics. What the device holds may be anything.
__device__ int64_t counted_rows(const int32_t* count, const BatchNorm& shape) {
  if (count == nullptr) return shape.rows;
  return min(max(int64_t{*count}, int64_t{0}), shape.rows);
}

// Where element i of a channel, counted through its rows, lies in x.
__device__ int64_t element_of(const BatchNorm& shape, int64_t channel, int64_t i) {
  if (shape.channels_last) return i * shape.channels + channel;
  return (i / shape.size * shape.channels + channel) * shape.size + i % shape.size;
}

struct BatchStatistics {
  float* mean;
  float* rstd;
  float* running_mean;
  float* running_var;
};

template <class T>
__global__ void batch_norm(const T* x, const float* gamma, const float* beta, const int32_t* count, T* y,
                           BatchStatistics to, BatchNorm shape) {
  const int64_t n = counted_rows(count, shape) * shape.size;
  const int64_t all = shape.rows * shape.size;
  for (int64_t channel = blockIdx.x; channel < shape.channels; channel += gridDim.x) {
    if (n == 0) {  // nothing is known of the channel
      for (int64_t i = threadIdx.x; i < all; i += blockDim.x) {
        y[element_of(shape, channel, i)] = static_cast<T>(0.0F);
      }
      if (threadIdx.x == 0) to.mean[channel] = to.rstd[channel] = 0.0F;
      continue;
    }
    float sum = 0.0F;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      sum += static_cast<float>(x[element_of(shape, channel, i)]);
    }
    const float mean = block_sum(sum) / static_cast<float>(n);
    float squares = 0.0F;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const float from_mean = static_cast<float>(x[element_of(shape, channel, i)]) - mean;
      squares += from_mean * from_mean;
    }
    squares = block_sum(squares);
    const float rstd = 1.0F / sqrtf(squares / static_cast<float>(n) + shape.epsilon);
    const float factor = rstd * gamma[channel];
    for (int64_t i = threadIdx.x; i < all; i += blockDim.x) {
      const int64_t element = element_of(shape, channel, i);
      y[element] = static_cast<T>((static_cast<float>(x[element]) - mean) * factor + beta[channel]);
    }
    if (threadIdx.x == 0) {
      const float variance = squares / static_cast<float>(n > 1 ? n - 1 : 1);
      to.mean[channel] = mean;
      to.rstd[channel] = rstd;
      to.running_mean[channel] = (1.0F - shape.momentum) * to.running_mean[channel] + shape.momentum * mean;
      to.running_var[channel] = (1.0F - shape.momentum) * to.running_var[channel] + shape.momentum * variance;
    }
  }
}

struct SavedBatchNorm {
  const float* gamma;
  const float* mean;
  const float* rstd;
};

template <class T>
__global__ void batch_norm_backward(const T* dy, const T* x, SavedBatchNorm saved, const int32_t* count, T* dx,
                                    float* dgamma, float* dbeta, BatchNorm shape) {
  const int64_t n = counted_rows(count, shape) * shape.size;
  for (int64_t channel = blockIdx.x; channel < shape.channels; channel += gridDim.x) {
    const float mean = saved.mean[channel];
    const float rstd = saved.rstd[channel];
    float sum = 0.0F;
    float product = 0.0F;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const int64_t element = element_of(shape, channel, i);
      const auto gradient = static_cast<float>(dy[element]);
      sum += gradient;
      product += gradient * (static_cast<float>(x[element]) - mean);
    }
    sum = block_sum(sum);
    product = block_sum(product) * rstd;
    const float factor = saved.gamma[channel] * rstd;
    const float offset = n > 0 ? sum / static_cast<float>(n) : 0.0F;
    const float slope = n > 0 ? product * rstd / static_cast<float>(n) : 0.0F;
    for (int64_t i = threadIdx.x; i < shape.rows * shape.size; i += blockDim.x) {
      const int64_t element = element_of(shape, channel, i);
      const float from_mean = static_cast<float>(x[element]) - mean;
      const float gradient = static_cast<float>(dy[element]) - offset - from_mean * slope;
      dx[element] = static_cast<T>(i < n ? factor * gradient : 0.0F);
    }
    if (threadIdx.x == 0) {
      dgamma[channel] = product;
      dbeta[channel] = sum;
    }
  }
}

struct BatchAffine {
  const float* gamma;
  const float* beta;
  const float* mean;
  const float* variance;
};

// The root of a channel's variance is taken once an element: the kernel is bound by memory, and the numbers of the
// channels stay in the cache. y may be x.
template <class T>
__global__ void batch_norm_inference(const T* x, BatchAffine by, T* y, BatchNorm shape) {
  const int64_t i = thread_index();
  if (i >= shape.elements()) return;
  const int64_t channel = (shape.channels_last ? i : i / shape.size) % shape.channels;
  const float rstd = 1.0F / sqrtf(by.variance[channel] + shape.epsilon);
  y[i] = static_cast<T>((static_cast<float>(x[i]) - by.mean[channel]) * rstd * by.gamma[channel] + by.beta[channel]);
}

const int32_t* count_of(const BatchNorm& shape, const OpArgs& args) {
  return shape.counted ? args.in<int32_t>(5) : nullptr;
}

// As many threads as a block may have: the fewer elements each adds, the fewer loads it waits for.
Launch block_each_channel(const BatchNorm& shape) {
  return tree_each(shape.channels, shape.rows * shape.size, kMostTreeThreads);
}

template <class T>
void run_normalization(const BatchNorm& shape, cudaStream_t stream, const OpArgs& args) {
  const BatchStatistics to{.mean = args.out<float>(1),
                           .rstd = args.out<float>(2),
                           .running_mean = args.out<float>(3),
                           .running_var = args.out<float>(4)};
  launch(batch_norm<T>, block_each_channel(shape), stream, args.in<T>(0), args.in<float>(1), args.in<float>(2),
         count_of(shape, args), args.out<T>(0), to, shape);
}

template <class T>
void run_normalization_backward(const BatchNorm& shape, cudaStream_t stream, const OpArgs& args) {
  const SavedBatchNorm saved{.gamma = args.in<float>(2), .mean = args.in<float>(3), .rstd = args.in<float>(4)};
  launch(batch_norm_backward<T>, block_each_channel(shape), stream, args.in<T>(0), args.in<T>(1), saved,
         count_of(shape, args), args.out<T>(0), args.out<float>(1), args.out<float>(2), shape);
}

template <class T>
void run_inference(const BatchNorm& shape, cudaStream_t stream, const OpArgs& args) {
  const BatchAffine by{
      .gamma = args.in<float>(1), .beta = args.in<float>(2), .mean = args.in<float>(3), .variance = args.in<float>(4)};
  launch(batch_norm_inference<T>, thread_each(shape.elements()), stream, args.in<T>(0), by, args.out<T>(0), shape);
}

}  // namespace

void add_normalization_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_BATCH_NORM, "batch_norm", batch_norm_of,
         each_floating([](auto x) { return run_normalization<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_BATCH_NORM_BACKWARD, "batch_norm_backward", batch_norm_backward_of,
         each_floating([](auto x) { return run_normalization_backward<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_BATCH_NORM_INFERENCE, "batch_norm_inference", batch_norm_inference_of,
         each_floating([](auto x) { return run_inference<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_naive
