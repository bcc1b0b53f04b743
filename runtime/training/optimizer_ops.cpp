#include "training/optimizer_ops.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <cstddef>

#include "training/muon_ops.hpp"

namespace gpunn::training {

using graph::Attributes;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

std::vector<std::string> optimizer_states(const OptimizerConfig& config) {
  switch (config.kind) {
    case OptimizerKind::sgd:
      return config.momentum != 0 ? std::vector<std::string>{"velocity"} : std::vector<std::string>{};
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::muon:
      return {"m", "v"};
    case OptimizerKind::rmsprop:
      return config.momentum != 0 ? std::vector<std::string>{"square", "velocity"} : std::vector<std::string>{"square"};
    case OptimizerKind::adagrad:
      return {"sum"};
    case OptimizerKind::lion:
      return {"m"};
    case OptimizerKind::lars:
      return {"velocity"};
  }
  return {};
}

std::string bounds_variable(std::size_t range) { return "parameter_bounds." + std::to_string(range); }

namespace {

gpunn_op op_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return GPUNN_OP_SGD_UPDATE;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::muon:
      return GPUNN_OP_ADAM_UPDATE;
    case OptimizerKind::rmsprop:
      return GPUNN_OP_RMSPROP_UPDATE;
    case OptimizerKind::adagrad:
      return GPUNN_OP_ADAGRAD_UPDATE;
    case OptimizerKind::lion:
      return GPUNN_OP_LION_UPDATE;
    case OptimizerKind::lars:
      return GPUNN_OP_LARS_UPDATE;
  }
  throw Error("an optimizer that no op is known of");
}

// Of an update of which the first `decayed` elements decay.
Attributes attributes_of(const OptimizerConfig& o, double decay, int64_t decayed) {
  const auto weight_decay = static_cast<float>(decay);
  const auto momentum = static_cast<float>(o.momentum);
  const auto beta1 = static_cast<float>(o.beta1), beta2 = static_cast<float>(o.beta2);
  const auto epsilon = static_cast<float>(o.epsilon);
  switch (o.kind) {
    case OptimizerKind::sgd:
      return Attributes::of(gpunn_sgd_attrs{.struct_size = 0,
                                            .momentum = momentum,
                                            .weight_decay = weight_decay,
                                            .nesterov = o.nesterov,
                                            .decayed = decayed});
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::muon:
      return Attributes::of(gpunn_adam_attrs{.struct_size = 0,
                                             .beta1 = beta1,
                                             .beta2 = beta2,
                                             .epsilon = epsilon,
                                             .weight_decay = weight_decay,
                                             .decoupled = o.kind != OptimizerKind::adam,
                                             .decayed = decayed});
    case OptimizerKind::rmsprop:
      return Attributes::of(gpunn_rmsprop_attrs{.struct_size = 0,
                                                .alpha = static_cast<float>(o.alpha),
                                                .epsilon = epsilon,
                                                .momentum = momentum,
                                                .weight_decay = weight_decay,
                                                .reserved = 0,
                                                .decayed = decayed});
    case OptimizerKind::adagrad:
      return Attributes::of(gpunn_adagrad_attrs{
          .struct_size = 0, .epsilon = epsilon, .weight_decay = weight_decay, .reserved = 0, .decayed = decayed});
    case OptimizerKind::lion:
      return Attributes::of(gpunn_lion_attrs{
          .struct_size = 0, .beta1 = beta1, .beta2 = beta2, .weight_decay = weight_decay, .decayed = decayed});
    case OptimizerKind::lars:
      return Attributes::of(gpunn_lars_attrs{.struct_size = 0,
                                             .momentum = momentum,
                                             .weight_decay = weight_decay,
                                             .trust = static_cast<float>(o.trust),
                                             .epsilon = epsilon,
                                             .reserved = 0,
                                             .decayed = decayed});
  }
  return {};
}

// The elements of a range in a flat array.
ValueId part_of(Graph& g, const UpdateRange& range, ValueId flat, const std::string& name) {
  const TensorType type{DType::f32, {range.end - range.begin}};
  if (g.value(flat).type == type) return flat;
  return g.add_view(name + "." + g.value(flat).name, flat, type, range.begin * static_cast<int64_t>(sizeof(float)));
}

std::string range_name(const ParameterLayout& layout, const char* what, std::size_t range) {
  return layout.ranges.size() == 1 ? what : what + ("." + std::to_string(range));
}

}  // namespace

bool records_gradient_norm(const Experiment& experiment) {
  return experiment.check_gradients || experiment.optimizer.clip_norm > 0;
}

ValueId add_gradient_bounds(Graph& g, const Experiment& experiment, const ParameterLayout& layout,
                            const UpdateValues& values) {
  const OptimizerConfig& o = experiment.optimizer;
  for (std::size_t i = 0; i < layout.ranges.size() && o.l1 > 0; ++i) {
    const UpdateRange& range = layout.ranges[i];
    if (range.decayed == 0) continue;
    const std::string name = range_name(layout, "l1", i);
    g.add(
        GPUNN_OP_L1_GRADIENT, name,
        Attributes::of(gpunn_l1_attrs{.struct_size = 0, .weight = static_cast<float>(o.l1), .decayed = range.decayed}),
        {part_of(g, range, values.gradients, name), part_of(g, range, values.parameters, name)});
  }
  if (o.clip_value > 0) {
    const auto bound = static_cast<float>(o.clip_value);
    g.add_into(GPUNN_OP_CLAMP, "clip_value",
               Attributes::of(gpunn_clamp_attrs{.struct_size = 0, .low = -bound, .high = bound}), {values.gradients},
               {values.gradients});
  }
  if (!records_gradient_norm(experiment)) return graph::kNoValue;
  const ValueId norm = g.add1(GPUNN_OP_NORM, "gradient_norm", {}, {values.gradients});
  if (o.clip_norm > 0) {
    const gpunn_clip_norm_attrs clip{
        .struct_size = 0, .max_norm = static_cast<float>(o.clip_norm), .epsilon = 1e-6F, .rescale = 0};
    g.add_into(GPUNN_OP_CLIP_NORM, "clip_norm", Attributes::of(clip), {values.gradients, norm}, {values.gradients});
  }
  return norm;
}

void add_average(Graph& g, double decay, const ParameterLayout& layout, ValueId average, ValueId parameters) {
  const UpdateRange trained{.group = -1, .begin = 0, .end = layout.trained, .decayed = 0};
  const ValueId kept = part_of(g, trained, average, "average");
  const gpunn_axpby_attrs mix{
      .struct_size = 0, .alpha = static_cast<float>(decay), .beta = static_cast<float>(1 - decay)};
  g.add_into(GPUNN_OP_AXPBY, "average", Attributes::of(mix), {kept, part_of(g, trained, parameters, "average")},
             {kept});
}

void add_optimizer(Graph& g, const OptimizerConfig& o, const ParameterLayout& layout, const UpdateValues& values) {
  std::vector<ValueId> states;
  for (const std::string& state : optimizer_states(o)) {
    states.push_back(g.add_value(state, layout.trained_type(), Storage::optimizer));
  }
  for (std::size_t i = 0; i < layout.ranges.size(); ++i) {
    const UpdateRange& range = layout.ranges[i];
    const GroupUpdate group = group_update(o, range.group);
    const std::string name = range_name(layout, "optimizer", i);
    const auto part = [&](ValueId flat) { return part_of(g, range, flat, name); };
    ValueId rate = values.rate;
    if (group.rate_factor != 1) {
      const gpunn_scale_attrs scale{.struct_size = 0, .factor = static_cast<float>(group.rate_factor)};
      rate = g.add1(GPUNN_OP_SCALE, name + ".learning_rate", Attributes::of(scale), {rate});
    }
    if (range.matrices) {
      UpdateValues with = values;
      with.rate = rate;
      add_muon(g, o, layout, range, with, states.front());
      continue;
    }
    std::vector<ValueId> inputs{part(values.parameters), part(values.gradients), rate};
    if (op_of(o.kind) == GPUNN_OP_ADAM_UPDATE) inputs.push_back(values.step);
    for (const ValueId state : states) inputs.push_back(part(state));
    if (o.kind == OptimizerKind::lars) {
      const auto bounds = static_cast<int64_t>(layout.bounds(range).size());
      inputs.push_back(g.add_value(bounds_variable(i), {DType::i64, {bounds}}, Storage::data));
    }
    g.add(op_of(o.kind), name, attributes_of(o, group.weight_decay, range.decayed), inputs);
  }
}

}  // namespace gpunn::training
