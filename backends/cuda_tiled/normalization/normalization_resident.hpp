// BATCH_NORM and its gradient in one pass over memory, for channels that fit the registers of a thread block or of a
// cluster.
#pragma once

#include <cstdint>

#include "common/normalization.hpp"
#include "normalization/arguments.hpp"
#include "normalization/channel_shares.cuh"

namespace gpunn::cuda_tiled {

// One value's end, as one op after the other has it.
template <class T>
__device__ float finish(float y, float residual, bool relu) {
  y = rounded_to<T>(y) + residual;
  return relu && y < 0.0F ? 0.0F : y;
}

// dy at the input of the batch norm's gradient.
template <unsigned width, class T>
__device__ __forceinline__ void load_gradient(const Backward<T>& b, int64_t address, float* dy) {
  load<width>(b.dy + address, dy);
  if (b.more_dy != nullptr) {
    float more[width];
    load<width>(b.more_dy + address, more);
#pragma unroll
    for (unsigned k = 0; k < width; ++k) dy[k] = rounded_to<T>(dy[k] + more[k]);
  }
  if (b.relu_y != nullptr) {
    float y[width];
    load<width>(b.relu_y + address, y);
#pragma unroll
    for (unsigned k = 0; k < width; ++k) dy[k] = y[k] > 0.0F ? dy[k] : 0.0F;
  }
}

struct BatchNormPlan {
  backends::BatchNorm shape;
  Split split;
  uint64_t workspace_bytes = 0;
};

// Throws Refusal.
BatchNormPlan batch_norm_plan(const backends::BatchNorm& shape);
// `parts` has plan.workspace_bytes bytes.
template <class T>
void run_batch_norm(const BatchNormPlan& plan, const Forward<T>& f, float2* parts, cudaStream_t stream);
template <class T>
void run_batch_norm_backward(const BatchNormPlan& plan, const Backward<T>& b, cudaStream_t stream);
namespace resident {

// Returns false and does nothing if the channel is too large.
template <class T>
bool forward(const Forward<T>& f, const Split& split, cudaStream_t stream);
template <class T>
bool backward(const Backward<T>& b, const Split& split, cudaStream_t stream);

}  // namespace resident
}  // namespace gpunn::cuda_tiled
