#include <gpunn/ops.h>

#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::ValueId;

ValueId linear(const LayerContext& c) {
  const Shape x = c.input_shape();
  require_rank(x, 2, "[N, features]", "; put a flatten in front");
  const int64_t units = c.arguments.integer("units");
  const ValueId w = c.parameter(weight(c, {units, x[1]}, x[1], units));
  const Attributes attrs = Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 1});
  const ValueId y = c.graph.add1(GPUNN_OP_MATMUL, c.layer.name, attrs, {c.inputs[0], w});
  return add_bias_and_activation(c, y, units, x[1]);
}

}  // namespace

LayerFunctions linear_layers() {
  return {
      {"linear", linear},
  };
}

}  // namespace gpunn::nn
