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
      {"embedding",
       "A row of a table for each integer of a sample: [tokens] becomes [tokens, width]. An integer that is not in the "
       "table gives zeros.",
       1,
       {{"count", V::integer, "", between(1, kMostUnits), {}, "Rows of the table: integers from 0 to count - 1."},
        {"width", V::integer, "", between(1, kMostUnits), {}, "Numbers of a row."}}},
  };
}

}  // namespace gpunn::config
