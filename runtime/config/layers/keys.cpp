#include "config/layers/keys.hpp"

namespace gpunn::config {

LayerKey activation_key() {
  return {"activation",
          LayerValue::choice,
          "none",
          {},
          {"none", "relu", "relu6", "sigmoid", "tanh", "gelu", "silu"},
          "Applied to the layer's sum."};
}

LayerKey bias_key() {
  return {"bias", LayerValue::boolean, "true", {}, {}, "Whether a number is added to each output channel."};
}

LayerKey init_key() {
  return {"init",
          LayerValue::choice,
          "default",
          {},
          {"default", "kaiming_normal", "kaiming_uniform", "xavier_normal", "xavier_uniform"},
          "Distribution of the first weights: see above. Biases are 0, but for `default`."};
}

LayerKey int8_weight_key() {
  return {"int8_weight",
          LayerValue::boolean,
          "false",
          {},
          {},
          "Whether the weights of each output are rounded to -128 to 127 times a step: the buffer `weight_scale`. ONNX "
          "files in eight bits set it. Engines then multiply the integers."};
}

}  // namespace gpunn::config
