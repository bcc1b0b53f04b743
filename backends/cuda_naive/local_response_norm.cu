// LOCAL_RESPONSE_NORM: one thread computes one element. The gradient runs two such kernels.
//
// Each thread sums the squares of its neighbours in the other channels, which lie `size` elements apart. The reads of
// neighbouring threads are coalesced in images. As many threads read each element as a window has channels, from the
// cache all but the first time. Every thread computes a power, a few dozen instructions. In the gradient an element
// needs the denominators of its neighbours. The first kernel stores each element's contribution to its neighbours in
// memory, and the second gathers them. In the next version a thread would go through the channels of a pixel with the
// window in registers. That takes one read an element and no memory between the two steps.
#include <cstdint>

#include "common/normalization.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

__device__ float denominator(const float* x, int64_t i, const LocalResponse& shape) {
  const int64_t channel = i / shape.size % shape.channels;
  const int64_t first = max(channel - shape.before, int64_t{0});
  const int64_t last = min(channel + shape.behind, shape.channels - 1);
  float sum = 0.0F;
  for (int64_t c = first; c <= last; ++c) {
    const float value = x[i + (c - channel) * shape.size];
    sum += value * value;
  }
  return shape.k + shape.factor * sum;
}

__global__ void local_response_norm(const float* x, float* y, LocalResponse shape) {
  const int64_t i = thread_index();
  if (i < shape.elements()) y[i] = x[i] * powf(denominator(x, i, shape), -shape.beta);
}

__global__ void send(const float* dy, const float* x, float* dx, float* sent, LocalResponse shape) {
  const int64_t i = thread_index();
  if (i >= shape.elements()) return;
  const float s = denominator(x, i, shape);
  const float own = dy[i] * powf(s, -shape.beta);
  dx[i] = own;
  sent[i] = own * x[i] / s;
}

// Element i is in the sums of the channels from `behind` before its own to `before` behind it.
__global__ void gather_differences(const float* x, const float* sent, float* dx, LocalResponse shape) {
  const int64_t i = thread_index();
  if (i >= shape.elements()) return;
  const int64_t channel = i / shape.size % shape.channels;
  const int64_t first = max(channel - shape.behind, int64_t{0});
  const int64_t last = min(channel + shape.before, shape.channels - 1);
  float sum = 0.0F;
  for (int64_t c = first; c <= last; ++c) sum += sent[i + (c - channel) * shape.size];
  dx[i] -= 2.0F * shape.beta * shape.factor * x[i] * sum;
}

void run_local_response_norm(const LocalResponse& shape, cudaStream_t stream, const OpArgs& args) {
  launch(local_response_norm, thread_each(shape.elements()), stream, args.in<float>(0), args.out<float>(0), shape);
}

void run_local_response_norm_backward(const LocalResponse& shape, cudaStream_t stream, const OpArgs& args) {
  const auto* x = args.in<float>(1);
  auto* dx = args.out<float>(0);
  auto* sent = args.workspace<float>();
  launch(send, thread_each(shape.elements()), stream, args.in<float>(0), x, dx, sent, shape);
  launch(gather_differences, thread_each(shape.elements()), stream, x, sent, dx, shape);
}

}  // namespace

void add_local_response_norm_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_LOCAL_RESPONSE_NORM, "local_response_norm", local_response_norm_of, run_local_response_norm);
  add_op(device, GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, "local_response_norm_backward", local_response_norm_backward_of,
         run_local_response_norm_backward);
}

}  // namespace gpunn::cuda_naive
