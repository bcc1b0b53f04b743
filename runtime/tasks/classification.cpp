// A class a row, among several.
#include "tasks/classification.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <array>
#include <memory>
#include <variant>

#include "tasks/class_report.hpp"
#include "tasks/losses.hpp"
#include "tasks/metrics/accuracy.hpp"

namespace gpunn::tasks {

using graph::Attributes;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

bool ends_in(const Experiment& experiment, const char* type) { return experiment.model.layers.back().type == type; }

bool knows_labels(LossKind kind) { return kind == LossKind::cross_entropy || kind == LossKind::hinge; }

// Whether the loss may be of a model with one output for two classes: above 0 for class 1.
bool takes_one_output(const TaskContext& c) {
  return c.experiment.loss.type() == LossKind::binary_cross_entropy && c.outputs == 2;
}

bool one_for_two(const TensorType& output, const TaskContext& c) {
  return output.shape.at(1) == 1 && takes_one_output(c);
}

void require_class_outputs(const Graph& g, const TaskContext& c, ValueId output) {
  const TensorType& type = g.value(output).type;
  const LayerSpec& last = c.experiment.model.layers.back();
  const bool one = takes_one_output(c);
  if (type.shape.size() != 2 || (type.shape[1] != c.outputs && !(one && type.shape[1] == 1))) {
    const std::string rows = std::to_string(type.shape.empty() ? 0 : type.shape[0]);
    throw ConfigError(
        {{last.where, "the model's last layer '" + last.name + "' gives " + to_string(type) + ", the data has " +
                          std::to_string(c.outputs) + " classes: expected f32[" + rows + ", " +
                          std::to_string(c.outputs) + "]" + (one ? " or f32[" + rows + ", 1]" : "")}});
  }
}

// Where the model has one output, of the targets of two classes that of class 1.
ValueId fitted_target(Graph& g, const TaskContext& c, ValueId output, ValueId target) {
  if (!one_for_two(g.value(output).type, c)) return target;
  gpunn_slice_attrs second{};
  second.rank = 2;
  second.start[1] = 1;
  second.size[0] = g.value(target).type.shape[0];
  second.size[1] = 1;
  return g.add1(GPUNN_OP_SLICE, "loss.target", Attributes::of(second), {target});
}

ValueId add_loss_to_classes(Graph& g, const TaskContext& c, ValueId output, ValueId target) {
  return add_loss_to_target(g, c.experiment.loss, output, fitted_target(g, c, output, target));
}

// The losses that know labels.
ValueId add_loss_to_label(Graph& g, const LossConfig& loss, ValueId output, ValueId label) {
  if (loss.type() == LossKind::cross_entropy) {
    return g.add(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, "loss", {}, {output, label}).front();
  }
  const Hinge& hinge = std::get<Hinge>(loss.kind);
  const gpunn_hinge_attrs attrs{
      .struct_size = 0, .margin = static_cast<float>(hinge.margin), .power = static_cast<int32_t>(hinge.power)};
  return g.add1(GPUNN_OP_HINGE_LOSS, "loss", Attributes::of(attrs), {output, label});
}

class Classification : public Task {
 public:
  std::string_view name() const override { return "classification"; }
  std::string_view help() const override { return "each sample is of one class"; }
  std::string_view target_kind() const override { return "class"; }
  std::string_view output() const override { return "class"; }
  std::string_view target() const override { return "classes"; }
  std::span<const TaskMetric> metrics() const override {
    static const auto metrics = accuracies();
    return metrics;
  }
  // One number for two classes is a logit.
  std::optional<LossKind> implied_loss(const Shape& outputs, int64_t names) const override {
    if (names != 2 || outputs != Shape{1, 1}) return std::nullopt;
    return LossKind::binary_cross_entropy;
  }
  std::unique_ptr<Report> make_report(const ReportInputs& inputs) const override { return make_class_report(inputs); }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::cross_entropy, LossKind::mean_squared_error,
                                         LossKind::binary_cross_entropy, LossKind::hinge, LossKind::huber};
    return kinds;
  }

  void require_output(const Graph& g, const TaskContext& c, const ModelOutputs& outputs) const override {
    require_class_outputs(g, c, outputs.last);
  }
  std::vector<Table> tables(const TaskContext& c) const override {
    if (!has_class_targets(c.experiment)) return {};
    return {{kClassTargets,
             {c.outputs, c.outputs},
             class_target_table(c.experiment.loss, c.outputs, c.experiment.data.dataset)}};
  }
  ValueId add_training_loss(Graph& g, const TaskContext& c, const ModelOutputs& outputs,
                            const Batch& batch) const override {
    require_output(g, c, outputs);
    const ValueId compared = add_loss_input(g, c.experiment, outputs);
    if (batch.has(kTargetField)) {
      return add_loss_to_classes(g, c, compared, batch.fields.at(kTargetField));
    }
    if (has_class_targets(c.experiment)) {
      return add_loss_to_classes(g, c, compared, add_class_targets(g, c.outputs, batch.label()));
    }
    return add_loss_to_label(g, c.experiment.loss, compared, batch.label());
  }

  // Without label smoothing and class weights.
  ValueId add_evaluation_loss(Graph& g, const TaskContext& c, const ModelOutputs& outputs,
                              const Batch& batch) const override {
    require_output(g, c, outputs);
    const ValueId compared = add_loss_input(g, c.experiment, outputs);
    if (knows_labels(c.experiment.loss.type())) return add_loss_to_label(g, c.experiment.loss, compared, batch.label());
    return add_loss_to_classes(g, c, compared, add_class_targets(g, c.outputs, batch.label()));
  }

  void add_to_totals(Graph& g, const TaskContext& c, const BatchResults& results, ValueId totals) const override {
    const Batch& batch = results.batch;
    g.add(GPUNN_OP_METRICS_ACCUMULATE, "metrics", {},
          {results.losses, batch.count, totals, add_scores(g, c, results.outputs), batch.label()});
  }

  // The largest of a row is the class that the model takes it for: the output itself, or 0 and it where it is one for
  // two classes.
  ValueId add_scores(Graph& g, const TaskContext& c, const ModelOutputs& outputs) const override {
    if (!one_for_two(g.value(outputs.last).type, c)) return outputs.last;
    gpunn_pad_attrs zero_in_front{};
    zero_in_front.rank = 2;
    zero_in_front.before[1] = 1;
    return g.add1(GPUNN_OP_PAD, "scores", Attributes::of(zero_in_front), {add_loss_input(g, c.experiment, outputs)});
  }

 protected:
  // Class probabilities. With binary_cross_entropy each class has its own, and those of a row sum to 1 only where they
  // are made of one output; with hinge, mean_squared_error and huber they are the softmax of outputs that were never
  // trained to be logits.
  gpunn_op prediction_op(const Graph& g, const TaskContext& c, const ModelOutputs& outputs) const override {
    if (ends_in(c.experiment, "softmax")) return GPUNN_OP_COPY;
    // Of 0 and a logit the softmax is one minus its sigmoid, and its sigmoid.
    const bool each =
        c.experiment.loss.type() == LossKind::binary_cross_entropy && g.value(outputs.last).type.shape.at(1) != 1;
    if (!each) return GPUNN_OP_SOFTMAX;
    return ends_in(c.experiment, "sigmoid") ? GPUNN_OP_COPY : GPUNN_OP_SIGMOID;
  }
};

}  // namespace

const Task& classification() {
  static const Classification task;
  return task;
}

bool has_class_targets(const Experiment& experiment) {
  const LossConfig& loss = experiment.loss;
  if (experiment.augmentation.mixup > 0 || experiment.augmentation.cutmix > 0 || !knows_labels(loss.type()))
    return true;
  const CrossEntropy* entropy = std::get_if<CrossEntropy>(&loss.kind);
  return entropy != nullptr && (entropy->label_smoothing > 0 || !entropy->class_weights.empty());
}

std::vector<float> class_target_table(const LossConfig& loss, int64_t classes, const std::string& data) {
  const CrossEntropy* given = std::get_if<CrossEntropy>(&loss.kind);
  const CrossEntropy entropy = given != nullptr ? *given : CrossEntropy();
  require_class_weights(loss, classes, data);
  const auto n = static_cast<std::size_t>(classes);
  const double spread = entropy.label_smoothing / static_cast<double>(classes);
  std::vector<float> table(n * n);
  for (std::size_t label = 0; label < n; ++label) {
    for (std::size_t c = 0; c < n; ++c) {
      const double weight = entropy.class_weights.empty() ? 1 : entropy.class_weights[c];
      const double share = c == label ? 1 - entropy.label_smoothing + spread : spread;
      table[label * n + c] = static_cast<float>(weight * share);
    }
  }
  return table;
}

ValueId add_class_targets(Graph& g, int64_t classes, ValueId label) {
  const ValueId table = g.add_value(kClassTargets, {DType::f32, {classes, classes}}, Storage::data);
  return g.add1(GPUNN_OP_GATHER_ROWS, "loss.target", {}, {table, label});
}

}  // namespace gpunn::tasks
