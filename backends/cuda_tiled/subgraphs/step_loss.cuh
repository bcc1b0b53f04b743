// Softmax with cross-entropy of a row of logits, by a warp.
#pragma once

#include <climits>

#include "step_shared.cuh"

namespace gpunn::cuda_tiled {

__device__ __forceinline__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFU, value, step));
  return value;
}

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, step);
  return value;
}

// Of a row of logits, by a warp.
struct Softmax {
  float most;
  float sum;  // of exp(logit - most)
  bool nan;
};

__device__ __forceinline__ Softmax softmax_of(const float* logits, int classes) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const float mine = lane < classes ? logits[lane] : -INFINITY;
  float most = mine;
  bool nan = isnan(mine);
  for (int c = lane + 32; c < classes; c += 32) {
    most = fmaxf(most, logits[c]);
    nan = nan || isnan(logits[c]);
  }
  most = warp_max(most);
  float sum = lane < classes ? expf(mine - most) : 0.0F;
  for (int c = lane + 32; c < classes; c += 32) sum += expf(logits[c] - most);
  return {.most = most, .sum = warp_sum(sum), .nan = __any_sync(0xFFFFFFFFU, nan ? 1 : 0) != 0};
}

// The gradient of softmax with cross-entropy of one row of logits, by a warp, class by class to put(class, value). All
// orders are fixed.
template <class Put>
__device__ __forceinline__ void loss_gradient(const StepPlan& plan, const float* logits, int classes, int row,
                                              int label, int count, Put put) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const bool known = label >= 0 && label < classes;
  const float share = row < count ? plan.loss_gradient / static_cast<float>(count) : 0.0F;
  const Softmax softmax = softmax_of(logits, classes);
  for (int c = lane; c < classes; c += 32) {
    const float probability = expf(logits[c] - softmax.most) / softmax.sum;
    put(c, known ? share * (probability - (c == label ? 1.0F : 0.0F)) : 0.0F);
  }
}

// Its loss and the label's rank, by another warp.
__device__ __forceinline__ void loss_of(const StepPlan& plan, const StepTensors& tensors, const float* logits,
                                        int classes, int row, int label) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const bool known = label >= 0 && label < classes;
  const Softmax softmax = softmax_of(logits, classes);
  const float mine = known ? logits[label] : 0.0F;
  int before = 0;
  for (int c = lane; c < classes; c += 32) {
    before += logits[c] > mine || (logits[c] == mine && c < label) ? 1 : 0;
  }
  before = warp_sum(before);
  if (lane == 0) {
    tensors.workspace[plan.losses + row] = known ? -(mine - softmax.most - logf(softmax.sum)) : NAN;
    reinterpret_cast<int*>(tensors.workspace + plan.ranks)[row] = !known ? INT_MAX : softmax.nan ? classes : before;
  }
}

}  // namespace gpunn::cuda_tiled
