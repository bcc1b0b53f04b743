#include <gpunn/ops.h>

#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::ValueId;

ValueId upsample(const LayerContext& c) {
  require_image(c.input_shape());
  const bool bilinear = c.arguments.choice("mode") == "bilinear";
  return enlarge(c, c.inputs[0], c.arguments.pair("factor"),
                 bilinear ? GPUNN_UPSAMPLE_BILINEAR : GPUNN_UPSAMPLE_NEAREST);
}

}  // namespace

LayerFunctions upsampling_layers() {
  return {
      {"upsample", upsample},
  };
}

}  // namespace gpunn::nn
