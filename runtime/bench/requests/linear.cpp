#include "bench/requests/request.hpp"

namespace gpunn::bench {

namespace {

using graph::Attributes;
using graph::OpSignature;

OpRequest matmul(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 3) bad(r, "MxNxK, with ta=1 or tb=1 for a transposed a or b");
  const int64_t m = r.sizes[0], n = r.sizes[1], k = r.sizes[2];
  const auto ta = static_cast<int32_t>(take(r, "ta", 0)), tb = static_cast<int32_t>(take(r, "tb", 0));
  OpSignature s{.op = info.id,
                .attrs = {},
                .inputs = {f32(ta != 0 ? Shape{k, m} : Shape{m, k}), f32(tb != 0 ? Shape{n, k} : Shape{k, n})},
                .outputs = {}};
  if (info.id == GPUNN_OP_MATMUL) {
    s.attrs = Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = ta, .transpose_b = tb});
  } else {
    s.inputs.push_back(f32({n}));
    s.attrs = Attributes::of(gpunn_matmul_bias_activation_attrs{
        .struct_size = 0, .transpose_a = ta, .transpose_b = tb, .activation = GPUNN_ACTIVATION_RELU});
  }
  return s;
}

OpRequest batch_matmul(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 4) bad(r, "BxMxNxK, with ta=1 or tb=1 for a transposed a or b");
  const int64_t batch = r.sizes[0], m = r.sizes[1], n = r.sizes[2], k = r.sizes[3];
  const auto ta = static_cast<int32_t>(take(r, "ta", 0)), tb = static_cast<int32_t>(take(r, "tb", 0));
  return OpSignature{
      .op = info.id,
      .attrs = Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = ta, .transpose_b = tb}),
      .inputs = {f32(ta != 0 ? Shape{batch, k, m} : Shape{batch, m, k}),
                 f32(tb != 0 ? Shape{batch, n, k} : Shape{batch, k, n})},
      .outputs = {}};
}

OpRequest bias(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() < 2) bad(r, "N,C and further dimensions");
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {f32(r.sizes)}, .outputs = {}};
  if (info.id == GPUNN_OP_BIAS_ADD) s.inputs.push_back(f32({r.sizes[1]}));
  if (info.id == GPUNN_OP_BIAS_ACTIVATION_BACKWARD) {
    s.inputs.push_back(f32(r.sizes));
    s.attrs =
        Attributes::of(gpunn_bias_activation_backward_attrs{.struct_size = 0, .activation = GPUNN_ACTIVATION_RELU});
  }
  return s;
}

}  // namespace

void add_linear(Builders& builders) {
  builders[GPUNN_OP_MATMUL] = builders[GPUNN_OP_MATMUL_BIAS_ACTIVATION] = matmul;
  builders[GPUNN_OP_BATCH_MATMUL] = batch_matmul;
  for (const int32_t op : {GPUNN_OP_BIAS_ADD, GPUNN_OP_BIAS_BACKWARD, GPUNN_OP_BIAS_ACTIVATION_BACKWARD}) {
    builders[op] = bias;
  }
}

}  // namespace gpunn::bench
