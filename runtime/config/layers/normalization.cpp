#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

std::vector<LayerType> normalization_layers() {
  using V = LayerValue;
  return {
      {"batch_norm",
       "Each channel of [C, ...] to a mean of 0 and a variance of 1, then times a weight plus a bias for each channel: "
       "in training by the batch's own statistics, otherwise by running ones that training keeps.",
       1,
       {{"epsilon", V::number, "1e-5", between(1e-12, 1), {}, "Added to the variance."},
        {"momentum", V::number, "0.1", between(0, 1), {}, "The newest batch's share of the running statistics."}}},
      {"layer_norm",
       "All of a sample's values to a mean of 0 and a variance of 1, then times a weight plus a bias for each.",
       1,
       {{"epsilon", V::number, "1e-5", between(1e-12, 1), {}, "Added to the variance."}}},
      {"local_response_norm",
       "x / (k + alpha / size * s)^beta, with s the sum of the squares of `size` neighbours in the channels of [C, "
       "...].",
       1,
       {{"size", V::integer, "5", between(1, kMostChannels), {}, "Channels, its own in the middle."},
        {"alpha", V::number, "1e-4", at_least(0), {}, "Factor of the mean square."},
        {"beta", V::number, "0.75", at_least(0), {}, "Exponent."},
        {"k", V::number, "1", above(0), {}, "What is added to it."}}},
  };
}

}  // namespace gpunn::config
