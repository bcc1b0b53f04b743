#include "bench/requests/request.hpp"

namespace gpunn::bench {

namespace {

using graph::Attributes;
using graph::OpSignature;

OpRequest softmax(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 2) bad(r, "N,C");
  OpRequest request(
      OpSignature{.op = info.id,
                  .attrs = {},
                  .inputs = std::vector<TensorType>(static_cast<std::size_t>(info.min_inputs), f32(r.sizes)),
                  .outputs = {}});
  if (info.id == GPUNN_OP_SOFTMAX_BACKWARD) request.contents[1] = uniform(0, 1);
  if (info.id == GPUNN_OP_LOG_SOFTMAX_BACKWARD) request.contents[1] = uniform(-4, 0);
  return request;
}

OpRequest batch_norm(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() < 2) bad(r, "N,C and further dimensions");
  const TensorType x = f32(r.sizes);
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {x}, .outputs = {}};
  if (info.id == GPUNN_OP_BATCH_NORM_BACKWARD) {
    s.inputs.push_back(x);
  } else {
    s.attrs = Attributes::of(gpunn_batch_norm_attrs{.struct_size = 0, .epsilon = 1e-5F, .momentum = 0.1F});
  }
  while (s.inputs.size() < static_cast<std::size_t>(info.min_inputs)) s.inputs.push_back(f32({r.sizes[1]}));
  return {s, {{4, uniform(0.5, 2)}}};  // a variance, or the inverse of a deviation
}

OpRequest layer_norm(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 2) bad(r, "N,D");
  const TensorType x = f32(r.sizes), columns = f32({r.sizes[1]}), rows = f32({r.sizes[0]});
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {x, columns, columns}, .outputs = {}};
  if (info.id == GPUNN_OP_LAYER_NORM_BACKWARD) {
    s.inputs = {x, x, columns, rows, rows};
    return {s, {{4, uniform(0.5, 2)}}};
  }
  s.attrs = Attributes::of(gpunn_layer_norm_attrs{.struct_size = 0, .epsilon = 1e-5F});
  return s;
}

OpRequest local_response_norm(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() < 2) bad(r, "N,C and further dimensions, with window= if wanted");
  const auto size = static_cast<int32_t>(take(r, "window", 5));
  return OpSignature{.op = info.id,
                     .attrs = Attributes::of(gpunn_local_response_norm_attrs{
                         .struct_size = 0, .size = size, .alpha = 1e-4F, .beta = 0.75F, .k = 1}),
                     .inputs = std::vector<TensorType>(static_cast<std::size_t>(info.min_inputs), f32(r.sizes)),
                     .outputs = {}};
}

}  // namespace

void add_normalization(Builders& builders) {
  for (const int32_t op :
       {GPUNN_OP_SOFTMAX, GPUNN_OP_SOFTMAX_BACKWARD, GPUNN_OP_LOG_SOFTMAX, GPUNN_OP_LOG_SOFTMAX_BACKWARD}) {
    builders[op] = softmax;
  }
  for (const int32_t op : {GPUNN_OP_BATCH_NORM, GPUNN_OP_BATCH_NORM_BACKWARD, GPUNN_OP_BATCH_NORM_INFERENCE}) {
    builders[op] = batch_norm;
  }
  builders[GPUNN_OP_LAYER_NORM] = builders[GPUNN_OP_LAYER_NORM_BACKWARD] = layer_norm;
  builders[GPUNN_OP_LOCAL_RESPONSE_NORM] = builders[GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD] = local_response_norm;
}

}  // namespace gpunn::bench
