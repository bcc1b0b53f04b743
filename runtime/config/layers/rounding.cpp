#include "config/layers/families.hpp"

namespace gpunn::config {

std::vector<LayerType> rounding_layers() {
  using V = LayerValue;
  return {
      {"round",
       "x as a whole number. Training passes no gradient through it.",
       1,
       {{"mode",
         V::choice,
         "nearest",
         {},
         {"nearest", "floor", "ceil", "trunc"},
         "nearest: halves go to the even number; trunc: towards 0."}}},
      {"sign", "-1, 0 or 1, NaN for NaN. Training passes no gradient through it.", 1, {}},
  };
}

}  // namespace gpunn::config
