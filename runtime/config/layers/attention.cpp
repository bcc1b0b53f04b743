#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

std::vector<LayerType> attention_layers() {
  using V = LayerValue;
  return {
      {"multi_head_attention",
       "Self-attention of [tokens, features]: in each head a token becomes a mean of all tokens' values, weighted by "
       "softmax(query . key / sqrt(features of a head)). (Vaswani et al., 2017.)",
       1,
       {{"heads", V::integer, "", between(1, kMostChannels), {}, "Parts that the features are split into."},
        {"dropout", V::number, "0", from_to_below(0, 1), {}, "The share of the weights that is dropped in training."},
        {"bias", V::boolean, "true", {}, {}, "Whether queries, keys, values and the output have a bias."}}},
      {"class_token", "Puts a trained token in front of [tokens, features]: [tokens + 1, features].", 1, {}},
      {"position_embedding", "A sample plus a trained number for each of its values.", 1, {}},
  };
}

}  // namespace gpunn::config
