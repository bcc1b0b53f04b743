// Activations and dropout of a fused training step, and their gradients.
//
// Dropout marks its output: -0 is a dropped element, and nothing else is. So the backward pass draws no random numbers.
#pragma once

#include <gpunn/random.h>

#include "subgraphs/step/shared.cuh"

namespace gpunn::cuda_tiled {

// What takes many instructions is called, not inlined: it is needed in many places, of which few run, and the kernels
// are slower the more code lies between what runs.
static __device__ __noinline__ float activate_curved(StepActivation activation, float x) {
  switch (activation) {
    case StepActivation::sigmoid:
      return 1.0F / (1.0F + expf(-x));
    case StepActivation::tanh:
      return tanhf(x);
    case StepActivation::gelu:
      return x * (0.5F * (1.0F + erff(x * 0.70710678118654752F)));
    case StepActivation::gelu_tanh:
      return x * (0.5F * (1.0F + tanhf(0.79788456080286536F * (x + 0.044715F * x * x * x))));
    default:
      return x / (1.0F + expf(-x));
  }
}

__device__ __forceinline__ float activate(StepActivation activation, float slope, float x) {
  if (activation > StepActivation::leaky_relu) return activate_curved(activation, x);
  if (activation == StepActivation::none || !(x < 0.0F)) return x;
  return activation == StepActivation::relu ? 0.0F : slope * x;
}

// By what f made, of those whose result says it.
__device__ __forceinline__ float gradient_by_result(StepActivation activation, float slope, float y) {
  if (activation == StepActivation::sigmoid) return y * (1.0F - y);
  if (activation == StepActivation::tanh) return 1.0F - y * y;
  if (activation == StepActivation::none || y > 0.0F) return 1.0F;
  return activation == StepActivation::relu ? 0.0F : slope;
}

static __device__ __noinline__ float gradient_curved(StepActivation activation, float x) {
  switch (activation) {
    case StepActivation::gelu:
      return 0.5F * (1.0F + erff(x * 0.70710678118654752F)) + x * 0.39894228040143268F * expf(-0.5F * x * x);
    case StepActivation::gelu_tanh: {
      // Beyond 16 t is 1 or -1, and the powers could overflow. This way round a NaN passes.
      const float near = x < -16.0F ? -16.0F : x > 16.0F ? 16.0F : x;
      const float t = tanhf(0.79788456080286536F * (near + 0.044715F * near * near * near));
      const float slope = 0.79788456080286536F * (1.0F + 3.0F * 0.044715F * near * near);
      return 0.5F * (1.0F + t) + x * (0.5F * (1.0F - t * t) * slope);
    }
    case StepActivation::silu: {
      const float s = 1.0F / (1.0F + expf(-x));
      return s * (1.0F + x * (1.0F - s));
    }
    default:
      return gradient_by_result(activation, 0.0F, activate_curved(activation, x));
  }
}

__device__ __forceinline__ float activation_gradient(StepActivation activation, float slope, float x) {
  if (activation > StepActivation::leaky_relu) return gradient_curved(activation, x);
  return gradient_by_result(activation, slope, x);
}

static __device__ __noinline__ uint32_t drawn_word(const StepDropout& dropout, uint64_t block, int word) {
  const gpunn_random_words words = gpunn_philox(dropout.seed, dropout.stream, block);
  return word == 0 ? words.word[0] : word == 1 ? words.word[1] : word == 2 ? words.word[2] : words.word[3];
}

// Dropout of a row of the batch, its numbers at hand: in shared memory each would be read for each element.
struct Dropping {
  const StepDropout* dropout;
  uint32_t threshold;
  float factor;
  int first;  // of the row's elements
  uint64_t block;

  __device__ __forceinline__ Dropping(const StepPlan& plan, const FinishPlan& finish, int64_t counter, int row)
      : dropout(&finish.finish.dropout),
        threshold(dropout->threshold),
        factor(dropout->factor),
        first(row * finish.row_size),
        block(gpunn_random_block(counter, int64_t{plan.batch} * finish.row_size)) {}

  // Element `i` of the row.
  __device__ __forceinline__ float operator()(int i, float value) const {
    if (threshold == 0) return value;
    const uint32_t drawn = drawn_word(*dropout, block + static_cast<uint64_t>((first + i) / 4), (first + i) % 4);
    return drawn >> 8 < threshold ? -0.0F : factor * value + 0.0F;
  }
};

// The gradient in front of dropout of one behind it, by what dropout made; `y` becomes what it was made of.
__device__ __forceinline__ float undrop(uint32_t threshold, float factor, float d, float& y) {
  if (threshold == 0) return d;
  if (__float_as_uint(y) == 0x80000000U) return 0.0F;
  y /= factor;
  return factor * d;
}

}  // namespace gpunn::cuda_tiled
