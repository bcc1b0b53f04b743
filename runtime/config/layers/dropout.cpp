#include "config/layers/families.hpp"

namespace gpunn::config {

std::vector<LayerType> dropout_layers() {
  using V = LayerValue;
  return {
      {"dropout",
       "In training, each value becomes 0 with probability p, the others grow to keep the mean.",
       1,
       {{"p", V::number, "0.5", from_to_below(0, 1), {}, "The share that is dropped."}}},
  };
}

}  // namespace gpunn::config
