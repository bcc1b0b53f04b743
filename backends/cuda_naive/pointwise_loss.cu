// BCE_LOGITS_LOSS, HUBER_LOSS and their gradients. In the forward pass one thread block sums one row. In the backward
// pass one thread computes one element.
//
// The threads of a block stride through the row together, so the reads are coalesced. The gradients read and write
// coalesced too. With ten classes 22 of a block's 32 threads are idle. The next version would give several rows to a
// block, and need no division to find an element's row.
#include "block_tree.cuh"
#include "common/loss.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// log(1 + e^x) - x * target, in the form in which nothing overflows.
struct BinaryCrossEntropy {
  __device__ float term(float x, float target) const {
    const float positive = x < 0.0F ? 0.0F : x;  // not fmaxf, which drops a NaN
    return positive - x * target + log1pf(expf(-fabsf(x)));
  }
  __device__ float slope(float x, float target) const {
    const float e = expf(-fabsf(x));
    return (x < 0.0F ? e : 1.0F) / (1.0F + e) - target;
  }
};

struct HuberLoss {
  float delta;
  __device__ float term(float x, float target) const {
    const float d = fabsf(x - target);
    return d <= delta ? 0.5F * d * d : delta * (d - 0.5F * delta);
  }
  __device__ float slope(float x, float target) const {
    const float d = x - target;
    const float raised = d < -delta ? -delta : d;
    return raised > delta ? delta : raised;
  }
};

template <class Loss>
__global__ void mean_by_row(Loss one, const float* x, const float* target, float* loss, LossRows shape) {
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const int64_t begin = row * shape.columns;
    float sum = 0.0F;
    for (int64_t i = begin + threadIdx.x; i < begin + shape.columns; i += blockDim.x) sum += one.term(x[i], target[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) loss[row] = sum / static_cast<float>(shape.columns);
  }
}

template <class Loss>
__global__ void gradient_by_element(Loss one, const float* dloss, const float* x, const float* target, float* dx,
                                    LossRows shape) {
  const int64_t i = thread_index();
  if (i >= shape.rows * shape.columns) return;
  dx[i] = dloss[i / shape.columns] / static_cast<float>(shape.columns) * one.slope(x[i], target[i]);
}

template <class Loss>
void forward(const Loss& one, const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(mean_by_row<Loss>, tree_each(shape.rows, shape.columns), stream, one, args.in<float>(0), args.in<float>(1),
         args.out<float>(0), shape);
}

template <class Loss>
void backward(const Loss& one, const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  launch(gradient_by_element<Loss>, thread_each(shape.rows * shape.columns), stream, one, args.in<float>(0),
         args.in<float>(1), args.in<float>(2), args.out<float>(0), shape);
}

void run_bce(const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  forward(BinaryCrossEntropy{}, shape, stream, args);
}

void run_bce_backward(const LossRows& shape, cudaStream_t stream, const OpArgs& args) {
  backward(BinaryCrossEntropy{}, shape, stream, args);
}

void run_huber(const Huber& plan, cudaStream_t stream, const OpArgs& args) {
  forward(HuberLoss{plan.delta}, plan.shape, stream, args);
}

void run_huber_backward(const Huber& plan, cudaStream_t stream, const OpArgs& args) {
  backward(HuberLoss{plan.delta}, plan.shape, stream, args);
}

}  // namespace

void add_pointwise_loss_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_BCE_LOGITS_LOSS, "bce_logits_loss", loss_of, run_bce);
  add_op(device, GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, "bce_logits_loss_backward", loss_backward_of, run_bce_backward);
  add_op(device, GPUNN_OP_HUBER_LOSS, "huber_loss", huber_of, run_huber);
  add_op(device, GPUNN_OP_HUBER_LOSS_BACKWARD, "huber_loss_backward", huber_backward_of, run_huber_backward);
}

}  // namespace gpunn::cuda_naive
