// RELU, LEAKY_RELU, SIGMOID, TANH, GELU, SILU and their backwards, and what a composite op does with its sum at the
// end.
#pragma once

#include <cstdint>

#include "common/requirements.hpp"

namespace gpunn::backends {

struct LeakyRelu {
  int64_t n = 0;
  float slope = 0.0F;
};

LeakyRelu leaky_relu_of(const OpDesc& desc);
LeakyRelu leaky_relu_backward_of(const OpDesc& desc);

struct Gelu {
  int64_t n = 0;
  bool tanh = false;  // by tanh, else by erf
};

Gelu gelu_of(const OpDesc& desc);
Gelu gelu_backward_of(const OpDesc& desc);

// Whether the activation is ReLU and not none; refuses any other.
bool is_relu(int32_t activation);

}  // namespace gpunn::backends
