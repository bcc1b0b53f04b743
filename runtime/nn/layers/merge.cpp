#include <gpunn/ops.h>

#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::ValueId;

ValueId add(const LayerContext& c) {
  if (c.input_shape(0) != c.input_shape(1)) {
    fail("expected two inputs of one shape, found " + c.input_text(0) + " and " + c.input_text(1));
  }
  return c.graph.add1(GPUNN_OP_ADD, c.layer.name, {}, {c.inputs[0], c.inputs[1]});
}

ValueId concat(const LayerContext& c) {
  const Shape first = c.input_shape(0);
  int64_t channels = 0;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const Shape& part = c.input_shape(i);
    Shape like = first;
    if (part.size() == like.size()) like[1] = part[1];
    if (part != like) {
      fail("expected inputs that differ in their channels alone, found " + c.input_text(0) + " and " + c.input_text(i));
    }
    channels += part[1];
  }
  Shape all = first;
  all[1] = channels;
  require_sane_size(all);
  return c.graph.add1(GPUNN_OP_CONCAT, c.layer.name,
                      graph::Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = 1}), c.inputs);
}

}  // namespace

LayerFunctions merge_layers() {
  return {
      {"add", add},
      {"concat", concat},
  };
}

}  // namespace gpunn::nn
