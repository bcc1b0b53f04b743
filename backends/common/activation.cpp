#include "common/activation.hpp"

#include "common/elementwise.hpp"

namespace gpunn::backends {
namespace {

LeakyRelu leaky_relu(const OpDesc& desc, std::size_t inputs) {
  return {.n = map_size(desc, inputs), .slope = require_attrs<gpunn_leaky_relu_attrs>(desc).slope};
}

Gelu gelu(const OpDesc& desc, std::size_t inputs) {
  return {.n = map_size(desc, inputs), .tanh = require_attrs<gpunn_gelu_attrs>(desc).tanh != 0};
}

}  // namespace

LeakyRelu leaky_relu_of(const OpDesc& desc) { return leaky_relu(desc, 1); }
LeakyRelu leaky_relu_backward_of(const OpDesc& desc) { return leaky_relu(desc, 2); }
Gelu gelu_of(const OpDesc& desc) { return gelu(desc, 1); }
Gelu gelu_backward_of(const OpDesc& desc) { return gelu(desc, 2); }

bool is_relu(int32_t activation) {
  require(activation == GPUNN_ACTIVATION_NONE || activation == GPUNN_ACTIVATION_RELU,
          "the activation is not one of none and relu");
  return activation == GPUNN_ACTIVATION_RELU;
}

}  // namespace gpunn::backends
