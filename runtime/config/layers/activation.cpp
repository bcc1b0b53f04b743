#include "config/layers/families.hpp"

namespace gpunn::config {

namespace {

LayerKey over_key() {
  return {"over", LayerValue::choice,  "classes",
          {},     {"classes", "last"}, "`last`: over the last dimension of a sample that has several."};
}

}  // namespace

std::vector<LayerType> activation_layers() {
  using V = LayerValue;
  return {
      {"relu", "max(x, 0).", 1, {}},
      {"relu6", "min(max(x, 0), 6).", 1, {}},
      {"leaky_relu",
       "x where it is above 0, else slope * x.",
       1,
       {{"slope", V::number, "0.01", between(-1000, 1000), {}, "Factor of values of at most 0."}}},
      {"sigmoid", "1 / (1 + exp(-x)).", 1, {}},
      {"tanh", "The hyperbolic tangent.", 1, {}},
      {"gelu",
       "x times the share of a standard normal distribution below x.",
       1,
       {{"approximate", V::choice, "none", {}, {"none", "tanh"}, "`tanh`: by a hyperbolic tangent instead of erf."}}},
      {"silu", "x * sigmoid(x), also called swish.", 1, {}},
      {"softmax",
       "Probabilities of [classes]. If it is the last layer, the loss `cross_entropy` takes its input.",
       1,
       {over_key()}},
      {"log_softmax", "Their logarithms; as the last layer, like `softmax`.", 1, {over_key()}},
  };
}

}  // namespace gpunn::config
