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

// What may have any sign and be 0 is made positive: powers and roots are of that.
OpRequest positive(Written& r, const graph::OpInfo& info) {
  OpRequest request = same_shape(r, info);
  for (std::size_t i = 0; i < request.signature.inputs.size(); ++i) request.contents[i] = uniform(0.5, 2);
  return request;
}

// Of a number for each channel, or for each row of a matrix.
OpRequest expand(Written& r, const graph::OpInfo& info) {
  if (r.sizes.empty() || r.sizes.size() > GPUNN_MAX_RANK) bad(r, "1 to 8 dimensions");
  gpunn_expand_attrs attrs{};
  attrs.rank = static_cast<int32_t>(r.sizes.size());
  std::ranges::copy(r.sizes, attrs.dim);
  Shape x(r.sizes.size(), 1);
  const std::size_t kept = r.sizes.size() > 2 ? 1 : 0;
  x[kept] = r.sizes[kept];
  return graph::OpSignature{.op = info.id, .attrs = Attributes::of(attrs), .inputs = {f32(x)}, .outputs = {}};
}

}  // namespace

void add_elementwise(Builders& builders) {
  for (const int32_t op : {GPUNN_OP_ADD,
                           GPUNN_OP_SCALE,
                           GPUNN_OP_AXPBY,
                           GPUNN_OP_CLAMP,
                           GPUNN_OP_COPY,
                           GPUNN_OP_RELU,
                           GPUNN_OP_RELU_BACKWARD,
                           GPUNN_OP_LEAKY_RELU,
                           GPUNN_OP_LEAKY_RELU_BACKWARD,
                           GPUNN_OP_SIGMOID,
                           GPUNN_OP_SIGMOID_BACKWARD,
                           GPUNN_OP_TANH,
                           GPUNN_OP_TANH_BACKWARD,
                           GPUNN_OP_GELU,
                           GPUNN_OP_GELU_BACKWARD,
                           GPUNN_OP_SILU,
                           GPUNN_OP_SILU_BACKWARD,
                           GPUNN_OP_SUB,
                           GPUNN_OP_MUL,
                           GPUNN_OP_MAXIMUM,
                           GPUNN_OP_MINIMUM,
                           GPUNN_OP_EQUAL,
                           GPUNN_OP_LESS,
                           GPUNN_OP_LESS_EQUAL,
                           GPUNN_OP_SELECT,
                           GPUNN_OP_EXP,
                           GPUNN_OP_ERF}) {
    builders[op] = same_shape;
  }
  for (const int32_t op : {GPUNN_OP_DIV, GPUNN_OP_POW, GPUNN_OP_LOG, GPUNN_OP_SQRT, GPUNN_OP_RSQRT}) {
    builders[op] = positive;
  }
  builders[GPUNN_OP_EXPAND] = expand;
  builders[GPUNN_OP_FILL] = fill;
}

}  // namespace gpunn::bench
