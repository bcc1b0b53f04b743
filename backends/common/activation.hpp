// What a composite op does with its sum at the end.
#pragma once

#include "common/requirements.hpp"

namespace gpunn::backends {

// Whether the activation is ReLU and not none; refuses any other.
inline bool is_relu(int32_t activation) {
  require(activation == GPUNN_ACTIVATION_NONE || activation == GPUNN_ACTIVATION_RELU,
          "the activation is not one of none and relu");
  return activation == GPUNN_ACTIVATION_RELU;
}

}  // namespace gpunn::backends
