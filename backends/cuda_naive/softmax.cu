// SOFTMAX, LOG_SOFTMAX and their gradients. One thread block computes one row.
//
// The threads of a block stride through the row together, so the reads are coalesced. A block reads its row three
// times: for the maximum, for the sum, and for the result. The cache serves all reads but the first if the row fits.
// Long rows reach nearly a third of the memory's speed. Rows of ten classes keep 10 of a block's 32 threads busy, and
// the time is that of the launch and the tree reduction. The next version would give a row to a warp, or a very short
// row to a thread, and keep it in registers between the passes. It would find maximum and sum in one pass that rescales
// the sum whenever the maximum grows (Milakov and Gimelshein, 2018).
#include "common/softmax.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"
#include "softmax_row.cuh"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

__global__ void softmax(const float* x, float* y, SoftmaxRows shape) {
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const float* in = x + row * shape.columns;
    float* out = y + row * shape.columns;
    const SoftmaxRow found = softmax_row(in, shape.columns);
    for (int64_t c = threadIdx.x; c < shape.columns; c += blockDim.x) out[c] = expf(in[c] - found.largest) / found.sum;
  }
}

// The maximum and the logarithm are subtracted one by one: their sum would lose the smaller.
__global__ void log_softmax(const float* x, float* y, SoftmaxRows shape) {
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const float* in = x + row * shape.columns;
    float* out = y + row * shape.columns;
    const SoftmaxRow found = softmax_row(in, shape.columns);
    const float log_sum = logf(found.sum);
    for (int64_t c = threadIdx.x; c < shape.columns; c += blockDim.x) out[c] = in[c] - found.largest - log_sum;
  }
}

__global__ void softmax_backward(const float* dy, const float* y, float* dx, SoftmaxRows shape) {
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const int64_t begin = row * shape.columns;
    const int64_t end = begin + shape.columns;
    float dot = 0.0F;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) dot += dy[i] * y[i];
    dot = block_sum(dot);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) dx[i] = y[i] * (dy[i] - dot);
  }
}

__global__ void log_softmax_backward(const float* dy, const float* y, float* dx, SoftmaxRows shape) {
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const int64_t begin = row * shape.columns;
    const int64_t end = begin + shape.columns;
    float sum = 0.0F;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) sum += dy[i];
    sum = block_sum(sum);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) dx[i] = dy[i] - expf(y[i]) * sum;
  }
}

template <void (*kernel)(const float*, float*, SoftmaxRows)>
void run_softmax(const SoftmaxRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(kernel, tree_each(shape.rows, shape.columns), stream, args.in<float>(0), args.out<float>(0), shape);
}

template <void (*kernel)(const float*, const float*, float*, SoftmaxRows)>
void run_softmax_backward(const SoftmaxRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(kernel, tree_each(shape.rows, shape.columns), stream, args.in<float>(0), args.in<float>(1), args.out<float>(0),
         shape);
}

}  // namespace

void add_softmax_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_SOFTMAX, "softmax", softmax_of, run_softmax<softmax>);
  add_op(device, GPUNN_OP_SOFTMAX_BACKWARD, "softmax_backward", softmax_backward_of,
         run_softmax_backward<softmax_backward>);
  add_op(device, GPUNN_OP_LOG_SOFTMAX, "log_softmax", softmax_of, run_softmax<log_softmax>);
  add_op(device, GPUNN_OP_LOG_SOFTMAX_BACKWARD, "log_softmax_backward", softmax_backward_of,
         run_softmax_backward<log_softmax_backward>);
}

}  // namespace gpunn::cuda_naive
