// BIAS_ADD: one thread computes one element. BIAS_BACKWARD: one thread block sums one channel. BIAS_ACTIVATION_BACKWARD
// runs the two steps one after the other.
//
// BIAS_ADD is coalesced and bound by memory. All elements of a channel read the same number, which stays in the cache.
//
// The sum over a channel of [N,C,H,W] reads runs of H x W elements, each coalesced. Only as many blocks work as there
// are channels: the 6 channels of LeNet leave most of the GPU idle. The time is then that of the loads that each thread
// waits for, one after another. In [N,C], and in channels-last images, which are such a matrix, neighbours in a column
// lie C elements apart. Each thread then fetches 32 bytes from memory and uses 4 of them, although the blocks of the
// next channels find the rest in the cache. The next version would split a channel over several blocks and add their
// sums in a second pass. If C is the last dimension, it would give each thread of a block its own column.
#include "block_tree.cuh"
#include "common/bias.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/floating.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

template <class T>
__global__ void bias_add(const T* x, const float* bias, T* y, Bias shape) {
  const int64_t i = thread_index();
  if (i < shape.elements()) y[i] = static_cast<T>(static_cast<float>(x[i]) + bias[i / shape.size % shape.channels]);
}

template <class T>
__global__ void sum_by_channel(const T* dy, float* db, Bias shape) {
  for (int64_t channel = blockIdx.x; channel < shape.channels; channel += gridDim.x) {
    float sum = 0.0F;
    for (int64_t i = threadIdx.x; i < shape.rows * shape.size; i += blockDim.x) {
      const int64_t row = i / shape.size;
      sum += static_cast<float>(dy[(row * shape.channels + channel) * shape.size + i % shape.size]);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) db[channel] = sum;
  }
}

template <class T>
__global__ void mask(const T* dy, const T* y, T* dx, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) dx[i] = static_cast<float>(y[i]) > 0.0F ? dy[i] : static_cast<T>(0.0F);
}

template <class T>
void run_add(const Bias& shape, cudaStream_t stream, const OpArgs& args) {
  launch(bias_add<T>, thread_each(shape.elements()), stream, args.in<T>(0), args.in<float>(1), args.out<T>(0), shape);
}

template <class T>
void sum(const Bias& shape, cudaStream_t stream, const T* dy, float* db) {
  // As many threads as a block may have: the fewer elements each adds, the fewer loads it waits for.
  launch(sum_by_channel<T>, tree_each(shape.channels, shape.rows * shape.size, kMostTreeThreads), stream, dy, db,
         shape);
}

template <class T>
void run_bias_backward(const Bias& shape, cudaStream_t stream, const OpArgs& args) {
  sum(shape, stream, args.in<T>(0), args.out<float>(0));
}

// Two kernels, for the mask wants all threads of the GPU and the sum a block a channel. The next version would mask in
// the first pass of a sum that is split over enough blocks, and read dy once.
template <class T>
void run_activation_backward(const Bias& shape, cudaStream_t stream, const OpArgs& args) {
  const T* dy = args.in<T>(0);
  T* dx = args.out<T>(0);
  const int64_t n = shape.elements();
  if (shape.relu) {
    launch(mask<T>, thread_each(n), stream, dy, args.in<T>(1), dx, n);
  } else if (dx != dy && n != 0) {
    const auto bytes = static_cast<std::size_t>(n) * sizeof(T);
    check(cudaMemcpyAsync(dx, dy, bytes, cudaMemcpyDeviceToDevice, stream), "copying dy to dx");
  }
  sum<T>(shape, stream, dx, args.out<float>(1));
}

}  // namespace

void add_bias_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_BIAS_ADD, "bias_add", bias_add_of, each_floating([](auto x) { return run_add<decltype(x)>; }),
         Dtypes::floating, Layouts::channels_last_too);
  add_op(device, GPUNN_OP_BIAS_BACKWARD, "bias_backward", bias_backward_of,
         each_floating([](auto x) { return run_bias_backward<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
  add_op(device, GPUNN_OP_BIAS_ACTIVATION_BACKWARD, "bias_activation_backward", bias_activation_backward_of,
         each_floating([](auto x) { return run_activation_backward<decltype(x)>; }), Dtypes::floating,
         Layouts::channels_last_too);
}

}  // namespace gpunn::cuda_naive
