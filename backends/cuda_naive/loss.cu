// NLL_LOSS, MSE_LOSS, SOFTMAX_CROSS_ENTROPY, SOFT_CROSS_ENTROPY and their gradients, with one loss a row. Kernels that
// sum over a row use one thread block a row, as softmax does. The others use one thread an element, or one thread a row
// if only one element of the row counts.
//
// A label comes from memory and may have any value. A label that names no class makes the row's loss NaN, so that
// training stops, and its gradient 0. It is never used as an address.
//
// All of these ops are bound by memory, and for ten classes by launch overhead: a batch of 128 rows is 1280 elements,
// fewer than the GPU has lanes. The gradients read and write coalesced. The threads of a row read its label and its
// dloss from the cache, and each pays an integer division to find its row. NLL_LOSS picks one element of a row: it
// fetches 32 bytes for 4, which does not matter at one element a row. There should be no next version: losses belong at
// the end of the kernel that makes the logits, or at least forward and backward in one pass over a row.
#include "common/loss.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"
#include "softmax_row.cuh"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

__device__ bool names_class(int32_t label, int64_t classes) { return label >= 0 && label < classes; }

__global__ void nll(const float* logp, const int32_t* label, float* loss, LossRows shape) {
  const int64_t row = thread_index();
  if (row >= shape.rows) return;
  loss[row] = names_class(label[row], shape.columns) ? -logp[row * shape.columns + label[row]] : NAN;
}

__global__ void nll_backward(const float* dloss, const int32_t* label, float* dlogp, LossRows shape) {
  const int64_t i = thread_index();
  if (i >= shape.rows * shape.columns) return;
  const int64_t row = i / shape.columns;
  // A label that names no class is no column's number either.
  dlogp[i] = i % shape.columns == label[row] ? -dloss[row] : 0.0F;
}

__global__ void mse(const float* x, const float* target, float* loss, LossRows shape) {
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const int64_t begin = row * shape.columns;
    float sum = 0.0F;
    for (int64_t i = begin + threadIdx.x; i < begin + shape.columns; i += blockDim.x) {
      const float difference = x[i] - target[i];
      sum += difference * difference;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) loss[row] = sum / static_cast<float>(shape.columns);
  }
}

__global__ void mse_backward(const float* dloss, const float* x, const float* target, float* dx, LossRows shape) {
  const int64_t i = thread_index();
  if (i >= shape.rows * shape.columns) return;
  const float share = 2.0F / static_cast<float>(shape.columns);
  dx[i] = share * dloss[i / shape.columns] * (x[i] - target[i]);
}

__global__ void cross_entropy(const float* x, const int32_t* label, float* loss, float* logp, LossRows shape) {
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const float* in = x + row * shape.columns;
    float* out = logp + row * shape.columns;
    const SoftmaxRow found = softmax_row(in, shape.columns);
    const float log_sum = logf(found.sum);
    for (int64_t c = threadIdx.x; c < shape.columns; c += blockDim.x) {
      out[c] = in[c] - found.largest - log_sum;
      if (c == label[row]) loss[row] = -out[c];
    }
    if (threadIdx.x == 0 && !names_class(label[row], shape.columns)) loss[row] = NAN;
  }
}

__global__ void cross_entropy_backward(const float* dloss, const float* logp, const int32_t* label, float* dx,
                                       LossRows shape) {
  const int64_t i = thread_index();
  if (i >= shape.rows * shape.columns) return;
  const int64_t row = i / shape.columns;
  const float one_hot = i % shape.columns == label[row] ? 1.0F : 0.0F;
  dx[i] = names_class(label[row], shape.columns) ? dloss[row] * (expf(logp[i]) - one_hot) : 0.0F;
}

__global__ void soft_cross_entropy(const float* x, const float* target, float* loss, float* logp, LossRows shape) {
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const float* in = x + row * shape.columns;
    const float* aim = target + row * shape.columns;
    float* out = logp + row * shape.columns;
    const SoftmaxRow found = softmax_row(in, shape.columns);
    const float log_sum = logf(found.sum);
    float sum = 0.0F;
    for (int64_t c = threadIdx.x; c < shape.columns; c += blockDim.x) {
      const float log_probability = in[c] - found.largest - log_sum;
      out[c] = log_probability;
      if (aim[c] != 0.0F) sum += aim[c] * log_probability;  // 0 * -inf would be NaN
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) loss[row] = -sum;
  }
}

// The targets are read twice, for their sum and for the difference; the second time from the cache.
__global__ void soft_cross_entropy_backward(const float* dloss, const float* logp, const float* target, float* dx,
                                            LossRows shape) {
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const int64_t begin = row * shape.columns;
    const int64_t end = begin + shape.columns;
    float sum = 0.0F;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) sum += target[i];
    sum = block_sum(sum);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      dx[i] = dloss[row] * (expf(logp[i]) * sum - target[i]);
    }
  }
}

void run_nll(const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(nll, thread_each(shape.rows), stream, args.in<float>(0), args.in<int32_t>(1), args.out<float>(0), shape);
}

void run_nll_backward(const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(nll_backward, thread_each(shape.rows * shape.columns), stream, args.in<float>(0), args.in<int32_t>(1),
         args.out<float>(0), shape);
}

void run_mse(const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(mse, tree_each(shape.rows, shape.columns), stream, args.in<float>(0), args.in<float>(1), args.out<float>(0),
         shape);
}

void run_mse_backward(const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(mse_backward, thread_each(shape.rows * shape.columns), stream, args.in<float>(0), args.in<float>(1),
         args.in<float>(2), args.out<float>(0), shape);
}

void run_cross_entropy(const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(cross_entropy, tree_each(shape.rows, shape.columns), stream, args.in<float>(0), args.in<int32_t>(1),
         args.out<float>(0), args.out<float>(1), shape);
}

void run_cross_entropy_backward(const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(cross_entropy_backward, thread_each(shape.rows * shape.columns), stream, args.in<float>(0), args.in<float>(1),
         args.in<int32_t>(2), args.out<float>(0), shape);
}

void run_soft_cross_entropy(const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(soft_cross_entropy, tree_each(shape.rows, shape.columns), stream, args.in<float>(0), args.in<float>(1),
         args.out<float>(0), args.out<float>(1), shape);
}

void run_soft_cross_entropy_backward(const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(soft_cross_entropy_backward, tree_each(shape.rows, shape.columns), stream, args.in<float>(0),
         args.in<float>(1), args.in<float>(2), args.out<float>(0), shape);
}

}  // namespace

void add_loss_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_NLL_LOSS, "nll_loss", loss_of, run_nll);
  add_op(device, GPUNN_OP_NLL_LOSS_BACKWARD, "nll_loss_backward", loss_backward_of, run_nll_backward);
  add_op(device, GPUNN_OP_MSE_LOSS, "mse_loss", loss_of, run_mse);
  add_op(device, GPUNN_OP_MSE_LOSS_BACKWARD, "mse_loss_backward", loss_backward_of, run_mse_backward);
  add_op(device, GPUNN_OP_SOFTMAX_CROSS_ENTROPY, "softmax_cross_entropy", loss_of, run_cross_entropy);
  add_op(device, GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, "softmax_cross_entropy_backward", loss_backward_of,
         run_cross_entropy_backward);
  add_op(device, GPUNN_OP_SOFT_CROSS_ENTROPY, "soft_cross_entropy", loss_of, run_soft_cross_entropy);
  add_op(device, GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, "soft_cross_entropy_backward", loss_backward_of,
         run_soft_cross_entropy_backward);
}

}  // namespace gpunn::cuda_naive
