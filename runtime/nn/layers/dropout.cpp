#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

graph::ValueId dropout(const LayerContext& c) { return drop(c, c.inputs[0], c.arguments.number("p")); }

}  // namespace

LayerFunctions dropout_layers() {
  return {
      {"dropout", dropout},
  };
}

}  // namespace gpunn::nn
