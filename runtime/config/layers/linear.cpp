#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

std::vector<LayerType> linear_layers() {
  using V = LayerValue;
  return {
      {"linear",
       "Weighted sums of [features], or of each token of [tokens, features].",
       1,
       {{"units", V::integer, "", between(1, kMostUnits), {}, "Outputs."},
        bias_key(),
        init_key(),
        activation_key(),
        int8_weight_key()}},
  };
}

}  // namespace gpunn::config
