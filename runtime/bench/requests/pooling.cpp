#include "bench/requests/request.hpp"
#include "conformance/oracle.hpp"
#include "conformance/values.hpp"

namespace gpunn::bench {

namespace {

using graph::Attributes;
using graph::OpSignature;

// The maxima that the gradient looks for.
void pool_again(const OpSignature& signature, std::vector<std::vector<std::byte>>& inputs) {
  const OpSignature forward{GPUNN_OP_MAX_POOL2D, signature.attrs, {signature.inputs[1]}, {signature.inputs[2]}};
  const auto y = conformance::run_oracle(forward, {conformance::decode(signature.inputs[1], inputs[1])});
  inputs[2] = conformance::encode(y.front());
}

OpRequest pooling(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W with window=, stride= and pad= if wanted");
  const auto window = static_cast<int32_t>(take(r, "window", 2)),
             stride = static_cast<int32_t>(take(r, "stride", window));
  const auto pad = static_cast<int32_t>(take(r, "pad", 0));
  OpSignature s{.op = info.id,
                .attrs = Attributes::of(gpunn_pool2d_attrs{
                    .struct_size = 0,
                    .window = {window, window},
                    .stride = {stride, stride},
                    .pad = {pad, pad},
                    .count_padding = 0,
                    .input_size = {static_cast<int32_t>(r.sizes[2]), static_cast<int32_t>(r.sizes[3])}}),
                .inputs = {f32(r.sizes)},
                .outputs = {}};
  const TensorType y = graph::op_info(GPUNN_OP_MAX_POOL2D).infer(s.attrs, s.inputs).front();
  if (info.id == GPUNN_OP_MAX_POOL2D_BACKWARD) s.inputs = {y, s.inputs[0], y};
  if (info.id == GPUNN_OP_AVG_POOL2D_BACKWARD) s.inputs = {y};
  OpRequest request(s);
  if (info.id == GPUNN_OP_MAX_POOL2D_BACKWARD) request.derive = pool_again;
  return request;
}

OpRequest upsampling(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W with factor= and bilinear=1 if wanted");
  const auto factor = static_cast<int32_t>(take(r, "factor", 2));
  const int32_t mode = take(r, "bilinear", 0) != 0 ? GPUNN_UPSAMPLE_BILINEAR : GPUNN_UPSAMPLE_NEAREST;
  OpSignature s{
      .op = info.id,
      .attrs = Attributes::of(gpunn_upsample2d_attrs{.struct_size = 0, .factor = {factor, factor}, .mode = mode}),
      .inputs = {f32(r.sizes)},
      .outputs = {}};
  if (info.id == GPUNN_OP_UPSAMPLE2D_BACKWARD) {
    s.inputs = graph::op_info(GPUNN_OP_UPSAMPLE2D).infer(s.attrs, s.inputs);
  }
  return s;
}

}  // namespace

void add_pooling(Builders& builders) {
  for (const int32_t op :
       {GPUNN_OP_MAX_POOL2D, GPUNN_OP_MAX_POOL2D_BACKWARD, GPUNN_OP_AVG_POOL2D, GPUNN_OP_AVG_POOL2D_BACKWARD}) {
    builders[op] = pooling;
  }
  builders[GPUNN_OP_UPSAMPLE2D] = builders[GPUNN_OP_UPSAMPLE2D_BACKWARD] = upsampling;
}

}  // namespace gpunn::bench
