// Softmax with cross-entropy, and the other losses of a fused training step. One warp computes one row of logits.
#pragma once

#include <climits>

#include "subgraphs/step/shared.cuh"

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

// The softmax of a row of logits, computed by a warp.
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

// For kernels with kLossPart: a row of targets, indexed by class.
struct TargetRow {
  const float* at;  // nullptr: zeros

  __device__ __forceinline__ float operator()(int c) const { return at == nullptr ? 0.0F : __ldcg(at + c); }
};

__device__ __forceinline__ TargetRow target_row(const StepPlan& plan, const GeneralTensors& tensors, int classes,
                                                int row, int label) {
  if (plan.targets == StepTargets::none || row >= plan.batch) return {nullptr};
  if (plan.targets == StepTargets::of_row) return {tensors.targets + int64_t{row} * classes};
  if (label < 0 || label >= plan.target_rows) return {nullptr};
  return {tensors.targets + int64_t{label} * classes};
}

// As loss_gradient(), of any loss.
template <class Put>
__device__ __forceinline__ void loss_gradient_general(const StepPlan& plan, const GeneralTensors& tensors,
                                                      const float* logits, int classes, int row, int label, int count,
                                                      Put put) {
  if (plan.loss == StepLoss::cross_entropy) return loss_gradient(plan, logits, classes, row, label, count, put);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const float share = row < count ? plan.loss_gradient / static_cast<float>(count) : 0.0F;
  if (plan.loss == StepLoss::hinge) {
    const bool known = label >= 0 && label < classes;
    const float mine = known ? logits[label] : 0.0F;
    float others = 0.0F;
    for (int c = lane; c < classes; c += 32) {
      const float off = plan.loss_a - mine + logits[c];
      const float slope = c == label || !(off > 0.0F) ? 0.0F : plan.loss_power == 2 ? 2.0F * off : 1.0F;
      others += slope;
      if (c != label) put(c, known ? share * (slope / static_cast<float>(classes)) : 0.0F);
    }
    others = warp_sum(others);
    if (known && lane == label % 32) put(label, -share * (others / static_cast<float>(classes)));
    return;
  }
  const TargetRow target = target_row(plan, tensors, classes, row, label);
  if (plan.loss == StepLoss::soft_cross_entropy) {
    const Softmax softmax = softmax_of(logits, classes);
    float sum = 0.0F;
    for (int c = lane; c < classes; c += 32) sum += target(c);
    sum = warp_sum(sum);
    for (int c = lane; c < classes; c += 32) {
      put(c, share * (expf(logits[c] - softmax.most) / softmax.sum * sum - target(c)));
    }
    return;
  }
  const float part = share / static_cast<float>(classes);
  for (int c = lane; c < classes; c += 32) {
    const float x = logits[c];
    const float t = target(c);
    if (plan.loss == StepLoss::squares) {
      put(c, 2.0F * part * (x - t));
    } else if (plan.loss == StepLoss::huber) {
      const float d = x - t;
      put(c, part * (d < -plan.loss_a ? -plan.loss_a : d > plan.loss_a ? plan.loss_a : d));
    } else {
      put(c, part * (1.0F / (1.0F + expf(-x)) - t));
    }
  }
}

// As loss_of(), of any loss.
__device__ __forceinline__ void loss_of_general(const StepPlan& plan, const GeneralTensors& tensors,
                                                const float* logits, int classes, int row, int label) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (tensors.logits != nullptr) {
    for (int c = lane; c < classes; c += 32) tensors.logits[int64_t{row} * classes + c] = logits[c];
  }
  float* losses = tensors.workspace + plan.losses;
  loss_of(plan, tensors, logits, classes, row, label);
  __syncwarp();
  const bool known = label >= 0 && label < classes;
  float loss = 0.0F;
  if (plan.loss == StepLoss::cross_entropy) {
    if (lane == 0 && tensors.row_losses != nullptr) tensors.row_losses[row] = losses[row];
    if (lane == 0 && plan.ranked == 0) reinterpret_cast<int*>(tensors.workspace + plan.ranks)[row] = INT_MAX;
    return;
  }
  if (plan.loss == StepLoss::hinge) {
    const float mine = known ? logits[label] : 0.0F;
    for (int c = lane; c < classes; c += 32) {
      const float margin = plan.loss_a - mine + logits[c];
      const float off = margin < 0.0F ? 0.0F : margin;
      if (c != label) loss += plan.loss_power == 2 ? off * off : off;
    }
    loss = known ? warp_sum(loss) / static_cast<float>(classes) : NAN;
  } else {
    const TargetRow target = target_row(plan, tensors, classes, row, label);
    const Softmax softmax = softmax_of(logits, classes);
    const float log_sum = logf(softmax.sum);
    for (int c = lane; c < classes; c += 32) {
      const float x = logits[c];
      const float t = target(c);
      const float d = x - t;
      if (plan.loss == StepLoss::soft_cross_entropy) {
        loss -= t == 0.0F ? 0.0F : t * (x - softmax.most - log_sum);
      } else if (plan.loss == StepLoss::squares) {
        loss += d * d;
      } else if (plan.loss == StepLoss::huber) {
        loss += fabsf(d) <= plan.loss_a ? 0.5F * d * d : plan.loss_a * (fabsf(d) - 0.5F * plan.loss_a);
      } else {
        loss += fmaxf(x, 0.0F) - x * t + log1pf(expf(-fabsf(x)));
      }
    }
    loss = warp_sum(loss);
    if (plan.loss != StepLoss::soft_cross_entropy) loss /= static_cast<float>(classes);
  }
  if (lane != 0) return;
  losses[row] = loss;
  if (tensors.row_losses != nullptr) tensors.row_losses[row] = loss;
  if (plan.ranked == 0) reinterpret_cast<int*>(tensors.workspace + plan.ranks)[row] = INT_MAX;
}

}  // namespace gpunn::cuda_tiled
