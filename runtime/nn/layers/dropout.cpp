#include <gpunn/ops.h>

#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::ValueId;

constexpr uint64_t kDropoutStreams = uint64_t{1} << 32;  // stream of the layer with index 0

ValueId dropout(const LayerContext& c) {
  const auto p = static_cast<float>(c.arguments.number("p"));
  if (!c.options.training || p == 0) return c.inputs[0];
  if (c.options.step == graph::kNoValue) fail("dropout needs the step counter in training");
  if (p >= 1) fail("p must be below 1 in single precision");
  const Attributes attrs = Attributes::of(
      gpunn_dropout_attrs{.struct_size = 0, .p = p, .seed = c.options.seed, .stream = kDropoutStreams + c.index});
  return c.graph.add1(GPUNN_OP_DROPOUT, c.layer.name, attrs, {c.inputs[0], c.options.step});
}

}  // namespace

LayerFunctions dropout_layers() {
  return {
      {"dropout", dropout},
  };
}

}  // namespace gpunn::nn
