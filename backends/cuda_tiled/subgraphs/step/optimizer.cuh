// The use of gradients in a step's second kernel: optimizers, bounds of gradients and averages of parameters.
#pragma once

#include <type_traits>

#include "cuda_common/formulas.cuh"
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
  using cuda::formulas::Formula;
  if (plan.optimizer == StepOptimizer::sgd) {
    Formula<GPUNN_OP_SGD_UPDATE> sgd = {plan.sgd};
    const bool has_velocity = tensors.state1 != nullptr;
    if (!has_velocity) sgd.attrs.momentum = 0.0F;
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
      Parameter parameter = parameters[j];
      const int at = place(j);
      sgd(parameter.w, gradient(j), parameter.state1, rates.rate, cuda::formulas::decay_of(sgd.attrs, at));
      if (at < 0) continue;
      if (has_velocity) tensors.state1[at] = parameter.state1;
      tensors.parameters[at] = parameter.w;
    }
    return;
  }
  const Formula<GPUNN_OP_ADAM_UPDATE> adam = {plan.adam};
#pragma unroll
  for (int j = 0; j < COUNT; ++j) {
    Parameter parameter = parameters[j];
    const int at = place(j);
    const float decay = cuda::formulas::decay_of(adam.attrs, at);
    const float keep = adam.attrs.decoupled != 0 ? cuda::formulas::kept(rates.rate, decay) : 1.0F;
    adam(parameter.w, gradient(j), parameter.state1, parameter.state2, rates.rate, decay, keep, rates.correction1,
         rates.correction2);
    if (at < 0) continue;
    tensors.state1[at] = parameter.state1;
    tensors.state2[at] = parameter.state2;
    tensors.parameters[at] = parameter.w;
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
  using cuda::formulas::Formula;
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
      case FlatKind::sgd:
        Formula<GPUNN_OP_SGD_UPDATE>{{.momentum = state1 != nullptr ? op.a : 0.0F, .nesterov = op.option}}(
            w, g, element.state1, rate, decay);
        break;
      case FlatKind::adam:
        Formula<GPUNN_OP_ADAM_UPDATE>{{.beta1 = op.a, .beta2 = op.b, .epsilon = op.c, .decoupled = op.option}}(
            w, g, element.state1, element.state2, rate, decay,
            op.option != 0 ? cuda::formulas::kept(rate, decay) : 1.0F, rates.correction1, rates.correction2);
        break;
      case FlatKind::rmsprop:
        Formula<GPUNN_OP_RMSPROP_UPDATE>{{.alpha = op.a, .epsilon = op.c, .momentum = state2 != nullptr ? op.b : 0.0F}}(
            w, g, element.state1, element.state2, rate, decay);
        break;
      case FlatKind::adagrad:
        Formula<GPUNN_OP_ADAGRAD_UPDATE>{{.epsilon = op.c}}(w, g, element.state1, rate, decay);
        break;
      case FlatKind::lion:
        Formula<GPUNN_OP_LION_UPDATE>{{.beta1 = op.a, .beta2 = op.b}}(w, g, element.state1, rate,
                                                                      cuda::formulas::kept(rate, decay));
        break;
    }
    if (state1 != nullptr) state1[at] = element.state1;
    if (state2 != nullptr) state2[at] = element.state2;
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
