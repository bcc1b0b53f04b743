#include <algorithm>

#include "bench/requests/request.hpp"

namespace gpunn::bench {

namespace {

using graph::Attributes;

Attributes attributes_of(int32_t op) {
  switch (op) {
    case GPUNN_OP_SCALE:
      return Attributes::of(gpunn_scale_attrs{.struct_size = 0, .factor = 1.5F});
    case GPUNN_OP_AXPBY:
      return Attributes::of(gpunn_axpby_attrs{.struct_size = 0, .alpha = 0.999F, .beta = 0.001F});
    case GPUNN_OP_CLAMP:
      return Attributes::of(gpunn_clamp_attrs{.struct_size = 0, .low = -0.5F, .high = 0.5F});
    case GPUNN_OP_LEAKY_RELU:
    case GPUNN_OP_LEAKY_RELU_BACKWARD:
      return Attributes::of(gpunn_leaky_relu_attrs{.struct_size = 0, .slope = 0.01F});
    case GPUNN_OP_GELU:
    case GPUNN_OP_GELU_BACKWARD:
      return Attributes::of(gpunn_gelu_attrs{.struct_size = 0, .tanh = 0});
    default:
      return {};
  }
}

// Every input has the given shape.
OpRequest same_shape(Written& r, const graph::OpInfo& info) {
  return graph::OpSignature{.op = info.id,
                            .attrs = attributes_of(info.id),
                            .inputs = std::vector<TensorType>(static_cast<std::size_t>(info.min_inputs), f32(r.sizes)),
                            .outputs = {}};
}

OpRequest fill(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() > GPUNN_MAX_RANK) bad(r, "at most 8 dimensions");
  gpunn_fill_attrs attrs{};
  attrs.dtype = GPUNN_F32;
  attrs.rank = static_cast<int32_t>(r.sizes.size());
  std::ranges::copy(r.sizes, attrs.dim);
  attrs.value = 0.5;
  return graph::OpSignature{.op = info.id, .attrs = Attributes::of(attrs), .inputs = {}, .outputs = {}};
}

}  // namespace

void add_elementwise(Builders& builders) {
  for (const int32_t op : {GPUNN_OP_ADD, GPUNN_OP_SCALE, GPUNN_OP_AXPBY, GPUNN_OP_CLAMP, GPUNN_OP_COPY, GPUNN_OP_RELU,
                           GPUNN_OP_RELU_BACKWARD, GPUNN_OP_LEAKY_RELU, GPUNN_OP_LEAKY_RELU_BACKWARD, GPUNN_OP_SIGMOID,
                           GPUNN_OP_SIGMOID_BACKWARD, GPUNN_OP_TANH, GPUNN_OP_TANH_BACKWARD, GPUNN_OP_GELU,
                           GPUNN_OP_GELU_BACKWARD, GPUNN_OP_SILU, GPUNN_OP_SILU_BACKWARD}) {
    builders[op] = same_shape;
  }
  builders[GPUNN_OP_FILL] = fill;
}

}  // namespace gpunn::bench
