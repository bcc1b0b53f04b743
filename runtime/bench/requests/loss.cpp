#include "bench/requests/request.hpp"

namespace gpunn::bench {

namespace {

using graph::Attributes;
using graph::OpSignature;

// Of rows and classes, with a label a row.
OpRequest labelled(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 2 || r.sizes[1] < 1) bad(r, "N,C");
  const TensorType x = f32(r.sizes), loss = f32({r.sizes[0]}), labels = i32({r.sizes[0]});
  const Content label = below(r.sizes[1]), log_probability = uniform(-4, 0);
  const auto classes = static_cast<int32_t>(r.sizes[1]);
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {}, .outputs = {}};
  if (info.id == GPUNN_OP_HINGE_LOSS || info.id == GPUNN_OP_HINGE_LOSS_BACKWARD) {
    s.attrs = Attributes::of(gpunn_hinge_attrs{.struct_size = 0, .margin = 1, .power = 2});
  }
  switch (info.id) {
    case GPUNN_OP_NLL_LOSS_BACKWARD:
      s.attrs = Attributes::of(gpunn_classes_attrs{.struct_size = 0, .classes = classes});
      s.inputs = {loss, labels};
      return {s, {{1, label}}};
    case GPUNN_OP_HINGE_LOSS_BACKWARD:
    case GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD:
      s.inputs = {loss, x, labels};
      return {s, {{1, log_probability}, {2, label}}};
    default:  // NLL_LOSS, HINGE_LOSS, SOFTMAX_CROSS_ENTROPY
      s.inputs = {x, labels};
      return {s, {{0, uniform(-4, 0)}, {1, label}}};
  }
}

// Against a target of the same shape.
OpRequest targeted(Written& r, const graph::OpInfo& info) {
  if (r.sizes.empty()) bad(r, "N and further dimensions");
  const TensorType x = f32(r.sizes), loss = f32({r.sizes[0]});
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {x, x}, .outputs = {}};
  if (info.min_inputs == 3) s.inputs.insert(s.inputs.begin(), loss);
  if (info.id == GPUNN_OP_HUBER_LOSS || info.id == GPUNN_OP_HUBER_LOSS_BACKWARD) {
    s.attrs = Attributes::of(gpunn_huber_attrs{.struct_size = 0, .delta = 0.5F});
  }
  std::map<std::size_t, Content> contents{{s.inputs.size() - 1, uniform(0, 1)}};
  if (info.id == GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD) contents[1] = uniform(-4, 0);
  return {s, contents};
}

}  // namespace

void add_loss(Builders& builders) {
  for (const int32_t op :
       {GPUNN_OP_NLL_LOSS, GPUNN_OP_NLL_LOSS_BACKWARD, GPUNN_OP_HINGE_LOSS, GPUNN_OP_HINGE_LOSS_BACKWARD,
        GPUNN_OP_SOFTMAX_CROSS_ENTROPY, GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD}) {
    builders[op] = labelled;
  }
  for (const int32_t op : {GPUNN_OP_MSE_LOSS, GPUNN_OP_MSE_LOSS_BACKWARD, GPUNN_OP_BCE_LOGITS_LOSS,
                           GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, GPUNN_OP_HUBER_LOSS, GPUNN_OP_HUBER_LOSS_BACKWARD,
                           GPUNN_OP_SOFT_CROSS_ENTROPY, GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD}) {
    builders[op] = targeted;
  }
}

}  // namespace gpunn::bench
