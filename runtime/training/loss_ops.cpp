#include "training/loss_ops.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

namespace gpunn::training {

using graph::Attributes;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

bool ends_in(const Experiment& experiment, const char* type) { return experiment.model.layers.back().type == type; }

void require_output(const Graph& g, const ProgramContext& c, ValueId output) {
  const TensorType& type = g.value(output).type;
  const LayerSpec& last = c.experiment.model.layers.back();
  const bool one = takes_one_output(c.experiment, c.classes);
  if (type.shape.size() != 2 || (type.shape[1] != c.classes && !(one && type.shape[1] == 1))) {
    const std::string rows = std::to_string(type.shape.empty() ? 0 : type.shape[0]);
    throw ConfigError(
        {{last.where, "the model's last layer '" + last.name + "' gives " + to_string(type) + ", the data has " +
                          std::to_string(c.classes) + " classes: expected f32[" + rows + ", " +
                          std::to_string(c.classes) + "]" + (one ? " or f32[" + rows + ", 1]" : "")}});
  }
  if (c.experiment.loss.kind == LossKind::cross_entropy &&
      (ends_in(c.experiment, "softmax") || ends_in(c.experiment, "log_softmax"))) {
    throw ConfigError(
        {{last.where, "loss cross_entropy takes logits and does its own softmax: remove the last layer '" + last.name +
                          "', or use mean_squared_error"}});
  }
}

bool one_for_two(const TensorType& output, const ProgramContext& c) {
  return output.shape.at(1) == 1 && takes_one_output(c.experiment, c.classes);
}

// Where the model has one output, of the targets of two classes that of class 1.
ValueId fitted_target(Graph& g, const ProgramContext& c, ValueId output, ValueId target) {
  if (!one_for_two(g.value(output).type, c)) return target;
  gpunn_slice_attrs second{};
  second.rank = 2;
  second.start[1] = 1;
  second.size[0] = g.value(target).type.shape[0];
  second.size[1] = 1;
  return g.add1(GPUNN_OP_SLICE, "loss.target", Attributes::of(second), {target});
}

ValueId add_loss_to(Graph& g, const ProgramContext& c, ValueId output, ValueId target) {
  const LossConfig& loss = c.experiment.loss;
  switch (loss.kind) {
    case LossKind::cross_entropy:
      return g.add(GPUNN_OP_SOFT_CROSS_ENTROPY, "loss", {}, {output, target}).front();
    case LossKind::mean_squared_error:
      return g.add1(GPUNN_OP_MSE_LOSS, "loss", {}, {output, target});
    case LossKind::binary_cross_entropy:
      return g.add1(GPUNN_OP_BCE_LOGITS_LOSS, "loss", {}, {output, fitted_target(g, c, output, target)});
    case LossKind::huber: {
      const gpunn_huber_attrs attrs{.struct_size = 0, .delta = static_cast<float>(loss.delta)};
      return g.add1(GPUNN_OP_HUBER_LOSS, "loss", Attributes::of(attrs), {output, target});
    }
    case LossKind::hinge:
      break;
  }
  throw Error(c.experiment.file.string() + ": the loss hinge compares outputs with one label a row, not with targets",
              ExitCode::usage);
}

// The losses that know labels.
ValueId add_loss_to_label(Graph& g, const ProgramContext& c, ValueId output, ValueId label) {
  const LossConfig& loss = c.experiment.loss;
  if (loss.kind == LossKind::cross_entropy) {
    return g.add(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, "loss", {}, {output, label}).front();
  }
  const gpunn_hinge_attrs attrs{
      .struct_size = 0, .margin = static_cast<float>(loss.margin), .power = static_cast<int32_t>(loss.power)};
  return g.add1(GPUNN_OP_HINGE_LOSS, "loss", Attributes::of(attrs), {output, label});
}

bool knows_labels(LossKind kind) { return kind == LossKind::cross_entropy || kind == LossKind::hinge; }

}  // namespace

bool takes_one_output(const Experiment& experiment, int64_t classes) {
  return experiment.loss.kind == LossKind::binary_cross_entropy && classes == 2;
}

bool has_soft_targets(const Experiment& experiment) {
  const LossConfig& loss = experiment.loss;
  return experiment.augmentation.mixup > 0 || !knows_labels(loss.kind) || loss.label_smoothing > 0 ||
         !loss.class_weights.empty();
}

std::vector<float> target_table(const LossConfig& loss, int64_t classes, const std::string& data) {
  const auto n = static_cast<std::size_t>(classes);
  if (!loss.class_weights.empty() && loss.class_weights.size() != n) {
    throw ConfigError({{loss.class_weights_place, "loss.class_weights: expected " + std::to_string(n) +
                                                      " numbers, one for each class of '" + data + "', found " +
                                                      std::to_string(loss.class_weights.size())}});
  }
  const double spread = loss.label_smoothing / static_cast<double>(classes);
  std::vector<float> table(n * n);
  for (std::size_t label = 0; label < n; ++label) {
    for (std::size_t c = 0; c < n; ++c) {
      const double weight = loss.class_weights.empty() ? 1 : loss.class_weights[c];
      const double share = c == label ? 1 - loss.label_smoothing + spread : spread;
      table[label * n + c] = static_cast<float>(weight * share);
    }
  }
  return table;
}

ValueId add_targets(Graph& g, const ProgramContext& c, ValueId label) {
  const ValueId table = g.add_value(variable::kTargets, {DType::f32, {c.classes, c.classes}}, Storage::data);
  return g.add1(GPUNN_OP_GATHER_ROWS, "loss.target", {}, {table, label});
}

ValueId add_training_loss(Graph& g, const ProgramContext& c, ValueId output, const Batch& batch) {
  require_output(g, c, output);
  if (batch.target != graph::kNoValue) return add_loss_to(g, c, output, batch.target);
  if (has_soft_targets(c.experiment)) return add_loss_to(g, c, output, add_targets(g, c, batch.label));
  return add_loss_to_label(g, c, output, batch.label);
}

ValueId add_evaluation_loss(Graph& g, const ProgramContext& c, ValueId output, ValueId label) {
  require_output(g, c, output);
  if (knows_labels(c.experiment.loss.kind)) return add_loss_to_label(g, c, output, label);
  return add_loss_to(g, c, output, add_targets(g, c, label));
}

ValueId add_class_scores(Graph& g, const ProgramContext& c, ValueId output) {
  if (!one_for_two(g.value(output).type, c)) return output;
  gpunn_pad_attrs zero_in_front{};
  zero_in_front.rank = 2;
  zero_in_front.before[1] = 1;
  return g.add1(GPUNN_OP_PAD, "scores", Attributes::of(zero_in_front), {output});
}

gpunn_op probabilities_op(const Experiment& experiment, const TensorType& output) {
  if (ends_in(experiment, "softmax")) return GPUNN_OP_COPY;
  // Of 0 and a logit the softmax is one minus its sigmoid, and its sigmoid.
  const bool each = experiment.loss.kind == LossKind::binary_cross_entropy && output.shape.at(1) != 1;
  return each ? GPUNN_OP_SIGMOID : GPUNN_OP_SOFTMAX;
}

}  // namespace gpunn::training
