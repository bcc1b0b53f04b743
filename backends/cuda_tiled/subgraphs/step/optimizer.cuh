// The use of gradients in a step's second kernel: optimizers, bounds of gradients and averages of parameters.
#pragma once

#include <type_traits>

#include "subgraphs/step/batch.cuh"
#include "subgraphs/step/blocks.hpp"
#include "subgraphs/step/plan.hpp"
#include "subgraphs/step/ranks.cuh"
#include "subgraphs/step/shared.cuh"
#include "subgraphs/step/sync.cuh"
#include "subgraphs/step/tensors.hpp"

namespace gpunn::cuda_tiled {

// A parameter and what the optimizer keeps for it.
struct Parameter {
  float w = 0.0F;
  float state1 = 0.0F;
  float state2 = 0.0F;
};

template <unsigned PARTS>
inline constexpr bool kUpdatesFlat = (PARTS & kUpdatePart) != 0;
template <unsigned PARTS>
inline constexpr bool kAddsOverRanks = (PARTS & kRankPart) != 0;
template <unsigned PARTS>
inline constexpr bool kUpdatesGeneral = (PARTS & kAllUpdateParts) != 0;
template <unsigned PARTS>
using UpdateTensors = std::conditional_t<kAddsOverRanks<PARTS>, RankTensors,
                                         std::conditional_t<kUpdatesGeneral<PARTS>, GeneralTensors, StepTensors>>;

// Before the kernel before has ended, which reads them only; past the caches of a multiprocessor, which may hold what
// they were before that.
__device__ __forceinline__ Parameter load_parameter(const StepTensors& tensors, int at) {
  Parameter parameter;
  if (at < 0) return parameter;
  parameter.w = __ldcg(tensors.parameters + at);
  if (tensors.state1 != nullptr) parameter.state1 = __ldcg(tensors.state1 + at);
  if (tensors.state2 != nullptr) parameter.state2 = __ldcg(tensors.state2 + at);
  return parameter;
}

// The beginning of StepHead: what the optimizer needs.
struct alignas(16) Rates {
  float rate;
  float correction1;
  float correction2;
  int count;
};

__device__ __forceinline__ Rates& shared_rates() {
  __shared__ Rates rates;
  return rates;
}

// Asynchronously, by one thread of a block: what many threads read at the same time one part of the L2 cache has to
// serve.
__device__ __forceinline__ void fetch_rates(const StepPlan& plan, const StepTensors& tensors) {
  if (threadIdx.x == 0) copy_async<16>(&shared_rates().rate, tensors.workspace + plan.head);
}

// SGD_UPDATE and ADAM_UPDATE of a thread's parameters at place(j), none where that is negative, whose gradients are
// gradient(j). Places are below 2^31: the plan sees to it.
template <int COUNT, class Place, class Gradient>
__device__ __forceinline__ void update(const StepPlan& plan, const StepTensors& tensors, Rates rates,
                                       const Parameter (&parameters)[COUNT], Place place, Gradient gradient) {
  if (plan.optimizer == StepOptimizer::sgd) {
    const gpunn_sgd_attrs sgd = plan.sgd;
    const bool has_speed = tensors.state1 != nullptr;
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
      const Parameter& parameter = parameters[j];
      const int at = place(j);
      const float decay = at < sgd.decayed ? sgd.weight_decay : 0.0F;
      const float g = gradient(j) + decay * parameter.w;
      const float speed = has_speed ? sgd.momentum * parameter.state1 + g : g;
      const float step = has_speed && sgd.nesterov != 0 ? g + sgd.momentum * speed : speed;
      if (at < 0) continue;
      if (has_speed) tensors.state1[at] = speed;
      tensors.parameters[at] = parameter.w - rates.rate * step;
    }
    return;
  }
  const gpunn_adam_attrs adam = plan.adam;
  const bool decoupled = adam.decoupled != 0;
#pragma unroll
  for (int j = 0; j < COUNT; ++j) {
    const Parameter& parameter = parameters[j];
    const int at = place(j);
    const float decay = at < adam.decayed ? adam.weight_decay : 0.0F;
    const float own = gradient(j);
    const float g = decoupled ? own : own + decay * parameter.w;
    const float keep = decoupled ? 1.0F - rates.rate * decay : 1.0F;
    const float first = adam.beta1 * parameter.state1 + (1.0F - adam.beta1) * g;
    const float second = adam.beta2 * parameter.state2 + (1.0F - adam.beta2) * (g * g);
    if (at < 0) continue;
    tensors.state1[at] = first;
    tensors.state2[at] = second;
    tensors.parameters[at] = keep * parameter.w - rates.rate * (first * rates.correction1) /
                                                      (sqrtf(second * rates.correction2) + adam.epsilon);
  }
}

// An element of the flat arrays, with what an optimizer and an average keep for it, all asked for at once. There is at
// most one of each for an element.
struct FlatElement {
  float w = 0.0F;
  float state1 = 0.0F;
  float state2 = 0.0F;
  float average = 0.0F;
};

__device__ __forceinline__ FlatElement load_element(const StepPlan& plan, const GeneralTensors& tensors, int at) {
  FlatElement element;
  if (at < 0) return element;
  element.w = __ldcg(tensors.parameters + at);
#pragma unroll 1
  for (int j = 0; j < plan.flat_ops; ++j) {
    const FlatOp& op = plan.flat_op[j];
    if (op.kind < FlatKind::sgd || at < op.from || at >= op.to) continue;
    const float* state1 = tensors.flat_state[j][0];
    const float* state2 = tensors.flat_state[j][1];
    if (op.kind == FlatKind::average) {
      element.average = __ldcg(state1 + at);
      continue;
    }
    if (state1 != nullptr) element.state1 = __ldcg(state1 + at);
    if (state2 != nullptr) element.state2 = __ldcg(state2 + at);
  }
  return element;
}

// L1_GRADIENT, CLAMP, CLIP_NORM, the optimizers and averages, as far as `end` goes, on an element whose gradient is
// `g`. Returns the gradient.
__device__ __forceinline__ float run_flat(const StepPlan& plan, const GeneralTensors& tensors, Rates rates, int begin,
                                          int end, int at, FlatElement element, float g, float scale) {
  float w = element.w;
#pragma unroll 1
  for (int j = begin; j < end; ++j) {
    const FlatOp& op = plan.flat_op[j];
    if (at < op.from || at >= op.to) continue;
    const float decay = at < op.decayed ? op.decay : 0.0F;
    const float rate = rates.rate * op.rate;
    float* state1 = tensors.flat_state[j][0];
    float* state2 = tensors.flat_state[j][1];
    switch (op.kind) {
      case FlatKind::clip_norm:
        g *= scale;
        continue;
      case FlatKind::l1:
        if (at < op.decayed) g += op.a * (w > 0.0F ? 1.0F : w < 0.0F ? -1.0F : 0.0F);
        continue;
      case FlatKind::clamp:
        g = g < op.a ? op.a : g > op.b ? op.b : g;
        continue;
      case FlatKind::average:
        state1[at] = op.a * element.average + op.b * w;
        continue;
      case FlatKind::sgd: {
        const float own = g + decay * w;
        float step = own;
        if (state1 != nullptr) {
          const float speed = op.a * element.state1 + own;
          state1[at] = speed;
          step = op.option != 0 ? own + op.a * speed : speed;
        }
        w -= rate * step;
        break;
      }
      case FlatKind::adam: {
        const bool decoupled = op.option != 0;
        const float own = decoupled ? g : g + decay * w;
        const float first = op.a * element.state1 + (1.0F - op.a) * own;
        const float second = op.b * element.state2 + (1.0F - op.b) * (own * own);
        state1[at] = first;
        state2[at] = second;
        w = (decoupled ? 1.0F - rate * decay : 1.0F) * w -
            rate * (first * rates.correction1) / (sqrtf(second * rates.correction2) + op.c);
        break;
      }
      case FlatKind::rmsprop: {
        const float own = g + decay * w;
        const float square = op.a * element.state1 + (1.0F - op.a) * (own * own);
        state1[at] = square;
        float step = own / (sqrtf(square) + op.c);
        if (state2 != nullptr) {
          step = op.b * element.state2 + step;
          state2[at] = step;
        }
        w -= rate * step;
        break;
      }
      case FlatKind::adagrad: {
        const float own = g + decay * w;
        const float sum = element.state1 + own * own;
        state1[at] = sum;
        w -= rate * own / (sqrtf(sum) + op.c);
        break;
      }
      case FlatKind::lion: {
        const float mixed = op.a * element.state1 + (1.0F - op.a) * g;
        w *= 1.0F - rate * decay;
        w -= rate * (mixed > 0.0F ? 1.0F : mixed < 0.0F ? -1.0F : mixed);
        state1[at] = op.b * element.state1 + (1.0F - op.b) * g;
        break;
      }
    }
    tensors.parameters[at] = w;
  }
  return g;
}

// The values of its parameters that a thread loads early.
template <unsigned PARTS>
using LoadedParameter = std::conditional_t<kUpdatesFlat<PARTS>, FlatElement, Parameter>;

template <unsigned PARTS>
__device__ __forceinline__ LoadedParameter<PARTS> load_early(const StepPlan& plan, const UpdateTensors<PARTS>& tensors,
                                                             int at) {
  if constexpr (kUpdatesFlat<PARTS>) {
    if (plan.flat != 0) return load_element(plan, tensors, at);
    const Parameter parameter = load_parameter(tensors, at);
    return {.w = parameter.w, .state1 = parameter.state1, .state2 = parameter.state2};
  } else {
    return load_parameter(tensors, at);
  }
}

// What becomes of a thread's gradients, as update(). Returns the sum of their squares where their norm is wanted.
template <unsigned PARTS, int COUNT, class Place, class Gradient>
__device__ __forceinline__ float use_gradients(const StepPlan& plan, const UpdateTensors<PARTS>& tensors, Rates rates,
                                               const LoadedParameter<PARTS> (&parameters)[COUNT], Place place,
                                               Gradient gradient) {
  if constexpr (kUpdatesFlat<PARTS>) {
    if (plan.flat == 0) {
      Parameter plain[COUNT];
#pragma unroll
      for (int j = 0; j < COUNT; ++j) {
        plain[j] = {.w = parameters[j].w, .state1 = parameters[j].state1, .state2 = parameters[j].state2};
      }
      update(plan, tensors, rates, plain, place, gradient);
      return 0.0F;
    }
    const bool all = plan.before_norm < 0;
    const int end = all ? plan.flat_ops : plan.before_norm;
    float squares = 0.0F;
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
      const int at = place(j);
      if (at < 0) continue;
      float g = gradient(j);
      if (end > 0) g = run_flat(plan, tensors, rates, 0, end, at, parameters[j], g, 1.0F);
      squares = fmaf(g, g, squares);
      if (!all || plan.flat_ops == 0) tensors.gradients[at] = g;
    }
    return squares;
  } else {
    update(plan, tensors, rates, parameters, place, gradient);
    return 0.0F;
  }
}

// The same of gradients that are this rank's alone, if there are several ranks. All threads have met behind
// note_run().
template <unsigned PARTS, int COUNT, class Place, class Gradient>
__device__ __forceinline__ float finish_gradients(const StepPlan& plan, const UpdateTensors<PARTS>& tensors,
                                                  Rates rates, const LoadedParameter<PARTS> (&parameters)[COUNT],
                                                  Place place, Gradient gradient) {
  if constexpr (kAddsOverRanks<PARTS>) {
    float sums[COUNT];
#pragma unroll
    for (int j = 0; j < COUNT; ++j) sums[j] = gradient(j);
    add_over_ranks(tensors.peers, shared_run(), place, sums);
    return use_gradients<PARTS>(plan, tensors, rates, parameters, place, [&](int j) { return sums[j]; });
  } else {
    return use_gradients<PARTS>(plan, tensors, rates, parameters, place, gradient);
  }
}

}  // namespace gpunn::cuda_tiled
