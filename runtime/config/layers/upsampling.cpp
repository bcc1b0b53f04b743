#include "config/layers/families.hpp"

namespace gpunn::config {

std::vector<LayerType> upsampling_layers() {
  using V = LayerValue;
  return {
      {"upsample",
       "[C, H, W] with rows and columns multiplied.",
       1,
       {{"factor", V::pair, "", between(1, 64), {}, "How much larger rows and columns become."},
        {"mode",
         V::choice,
         "nearest",
         {},
         {"nearest", "bilinear"},
         "Copies, or means of neighbours (as `align_corners=False` in PyTorch)."}}},
  };
}

}  // namespace gpunn::config
