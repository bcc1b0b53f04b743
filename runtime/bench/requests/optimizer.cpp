#include "bench/requests/request.hpp"

namespace gpunn::bench {

namespace {

using graph::Attributes;
using graph::OpSignature;

int64_t parameters(Written& r) {
  if (r.sizes.size() != 1) bad(r, "the number of parameters");
  return r.sizes[0];
}

OpSignature update(int32_t op, int64_t n, Attributes attrs, int states) {
  const TensorType w = f32({n});
  OpSignature s{.op = op, .attrs = std::move(attrs), .inputs = {w, w, f32({})}, .outputs = {}};
  for (int i = 0; i < states; ++i) s.inputs.push_back(w);
  return s;
}

// A rate so small that what is updated over and over again stays finite; states that are sums of squares.
std::map<std::size_t, Content> moderate(std::map<std::size_t, Content> more = {}) {
  more[2] = constant(1e-6);
  return more;
}

OpRequest sgd(Written& r, const graph::OpInfo& info) {
  const int64_t n = parameters(r);
  const gpunn_sgd_attrs attrs{.struct_size = 0, .momentum = 0.9F, .weight_decay = 1e-4F, .nesterov = 1, .decayed = n};
  return {update(info.id, n, Attributes::of(attrs), 1), moderate()};
}

OpRequest adam(Written& r, const graph::OpInfo& info) {
  const int64_t n = parameters(r);
  const gpunn_adam_attrs attrs{.struct_size = 0,
                               .beta1 = 0.9F,
                               .beta2 = 0.999F,
                               .epsilon = 1e-8F,
                               .weight_decay = 1e-4F,
                               .decoupled = 1,
                               .decayed = n};
  OpSignature s = update(info.id, n, Attributes::of(attrs), 2);
  s.inputs.insert(s.inputs.begin() + 3, step_type());
  return {s, moderate({{3, constant(10)}, {5, uniform(0, 1)}})};
}

OpRequest rmsprop(Written& r, const graph::OpInfo& info) {
  const int64_t n = parameters(r);
  const gpunn_rmsprop_attrs attrs{.struct_size = 0,
                                  .alpha = 0.99F,
                                  .epsilon = 1e-8F,
                                  .momentum = 0.9F,
                                  .weight_decay = 1e-4F,
                                  .reserved = 0,
                                  .decayed = n};
  return {update(info.id, n, Attributes::of(attrs), 2), moderate({{3, uniform(0, 1)}})};
}

OpRequest adagrad(Written& r, const graph::OpInfo& info) {
  const int64_t n = parameters(r);
  const gpunn_adagrad_attrs attrs{
      .struct_size = 0, .epsilon = 1e-8F, .weight_decay = 1e-4F, .reserved = 0, .decayed = n};
  return {update(info.id, n, Attributes::of(attrs), 1), moderate({{3, uniform(0, 1)}})};
}

OpRequest lion(Written& r, const graph::OpInfo& info) {
  const int64_t n = parameters(r);
  const gpunn_lion_attrs attrs{.struct_size = 0, .beta1 = 0.9F, .beta2 = 0.99F, .weight_decay = 1e-4F, .decayed = n};
  return {update(info.id, n, Attributes::of(attrs), 1), moderate()};
}

// One part: all of it.
OpRequest lars(Written& r, const graph::OpInfo& info) {
  const int64_t n = parameters(r);
  const gpunn_lars_attrs attrs{.struct_size = 0,
                               .momentum = 0.9F,
                               .weight_decay = 1e-4F,
                               .trust = 1e-3F,
                               .epsilon = 1e-8F,
                               .reserved = 0,
                               .decayed = n};
  OpSignature s = update(info.id, n, Attributes::of(attrs), 1);
  s.inputs.push_back({DType::i64, {2}});
  return {s, moderate({{4, {Content::Kind::rising, 0, static_cast<double>(n)}}})};
}

OpRequest clip(Written& r, const graph::OpInfo& info) {
  const int64_t n = parameters(r);
  const gpunn_clip_norm_attrs attrs{.struct_size = 0, .max_norm = 1, .epsilon = 1e-6F, .rescale = 0};
  const OpSignature s{.op = info.id, .attrs = Attributes::of(attrs), .inputs = {f32({n}), f32({})}, .outputs = {}};
  return {s, {{1, constant(2)}}};
}

OpRequest l1(Written& r, const graph::OpInfo& info) {
  const int64_t n = parameters(r);
  const gpunn_l1_attrs attrs{.struct_size = 0, .weight = 1e-6F, .decayed = n};
  return OpSignature{.op = info.id, .attrs = Attributes::of(attrs), .inputs = {f32({n}), f32({n})}, .outputs = {}};
}

}  // namespace

void add_optimizer(Builders& builders) {
  builders[GPUNN_OP_SGD_UPDATE] = sgd;
  builders[GPUNN_OP_ADAM_UPDATE] = adam;
  builders[GPUNN_OP_RMSPROP_UPDATE] = rmsprop;
  builders[GPUNN_OP_ADAGRAD_UPDATE] = adagrad;
  builders[GPUNN_OP_LION_UPDATE] = lion;
  builders[GPUNN_OP_LARS_UPDATE] = lars;
  builders[GPUNN_OP_CLIP_NORM] = clip;
  builders[GPUNN_OP_L1_GRADIENT] = l1;
}

}  // namespace gpunn::bench
