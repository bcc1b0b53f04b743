#include "config/layers/families.hpp"

namespace gpunn::config {

namespace {
constexpr double kMostResized = 65536;
}

std::vector<LayerType> upsampling_layers() {
  using V = LayerValue;
  return {
      {"upsample",
       "[C, H, W] with rows and columns multiplied, or as many as a second layer has: `from: [x, like]`.",
       1,
       {{"factor",
         V::sizes,
         "0",
         between(0, 64),
         {},
         "How much larger rows and columns become; 0: as many as the second layer has."},
        {"mode",
         V::choice,
         "nearest",
         {},
         {"nearest", "bilinear"},
         "Copies, or means of neighbours (as `align_corners=False` in PyTorch)."}},
       nullptr,
       2},
      {"resize",
       "[C, H, W] with any number of rows and columns: each a weighted mean of neighbours, as `upsample` with `mode: "
       "bilinear`. The weights are buffers; ONNX files bring others.",
       1,
       {{"rows", V::integer, "0", between(0, kMostResized), {}, "How many; 0: as before."},
        {"columns", V::integer, "0", between(0, kMostResized), {}, "How many; 0: as before."}}},
  };
}

}  // namespace gpunn::config
