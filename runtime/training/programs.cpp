#include "training/programs.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <set>

#include "graph/gradient.hpp"
#include "graph/op_info.hpp"

namespace gpunn::training {

using graph::Attributes;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

bool ends_in_softmax(const Experiment& experiment) { return experiment.model.layers.back().type == "softmax"; }

// The loss of each row, f32[N].
ValueId add_loss(Graph& g, const ProgramContext& c, ValueId output, ValueId label) {
  const TensorType& type = g.value(output).type;
  if (type.shape.size() != 2 || type.shape[1] != c.classes) {
    const LayerSpec& last = c.experiment.model.layers.back();
    throw ConfigError({{last.where, "the model's last layer '" + last.name + "' gives " + to_string(type) +
                                        ", the data has " + std::to_string(c.classes) + " classes: expected f32[" +
                                        std::to_string(type.shape.empty() ? 0 : type.shape[0]) + ", " +
                                        std::to_string(c.classes) + "]"}});
  }
  if (c.experiment.loss == LossKind::cross_entropy) {
    if (ends_in_softmax(c.experiment)) {
      const LayerSpec& last = c.experiment.model.layers.back();
      throw ConfigError(
          {{last.where, "loss cross_entropy takes logits and does its own softmax: remove the last layer '" +
                            last.name + "', or use mean_squared_error"}});
    }
    return g.add(GPUNN_OP_SOFTMAX_CROSS_ENTROPY, "loss", {}, {output, label}).front();
  }
  const ValueId one_hot = g.add_value(variable::kOneHot, {DType::f32, {c.classes, c.classes}}, Storage::data);
  const ValueId target = g.add1(GPUNN_OP_GATHER_ROWS, "loss.target", {}, {one_hot, label});
  return g.add1(GPUNN_OP_MSE_LOSS, "loss", {}, {output, target});
}

ValueId add_counter(Graph& g, const char* name) { return g.add_value(name, {DType::i64, {}}, Storage::state); }

// What evaluation and prediction begin with: the batch, and the model's output for it.
struct Inference {
  ValueId step, output;
  Batch batch;
};

Inference add_inference(Graph& g, const ProgramContext& c, const SplitType& split, int64_t batch_size) {
  const ValueId step = add_counter(g, variable::kEvalStep);
  const ValueId parameters = g.add_value(variable::kParameters, c.layout.type(), Storage::parameters);
  const Batch batch = add_batch(g, split, step, evaluation_sampling(split, batch_size));
  const ValueId output = nn::build_forward(g, c.experiment.model, batch.x, add_parameter_views(g, c.layout, parameters),
                                           {.training = false, .seed = c.experiment.seed, .step = step});
  return {step, output, batch};
}

// Has the gradient of each parameter written to its place in the flat array: the value becomes a view of it, or is
// copied where it also is something else's.
void bind_gradients(Graph& g, const ParameterLayout& layout, const std::vector<ValueId>& gradients, ValueId flat) {
  std::set<ValueId> bound;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const ValueId gradient = gradients[i];
    if (gradient == graph::kNoValue) continue;  // the loss does not depend on it: stays 0
    const int64_t offset = layout.offset[i] * static_cast<int64_t>(sizeof(float));
    graph::Value& value = g.value(gradient);
    if (value.view_of == graph::kNoValue && value.storage == Storage::arena && bound.insert(gradient).second) {
      value.view_of = flat;
      value.view_offset = offset;
      value.storage = Storage::gradients;
    } else {
      const ValueId place =
          g.add_view(layout.parameters[i].name + ".gradient", flat, {DType::f32, layout.parameters[i].shape}, offset);
      g.add_into(GPUNN_OP_COPY, layout.parameters[i].name + ".gradient", {}, {gradient}, {place});
    }
  }
}

void add_optimizer(Graph& g, const ProgramContext& c, ValueId parameters, ValueId gradients, ValueId rate,
                   ValueId step) {
  const OptimizerConfig& o = c.experiment.optimizer;
  std::vector<ValueId> inputs{parameters, gradients, rate};
  const auto add_states = [&] {
    for (const std::string& state : optimizer_states(o)) {
      inputs.push_back(g.add_value(state, c.layout.type(), Storage::optimizer));
    }
  };
  const auto weight_decay = static_cast<float>(o.weight_decay);
  const auto momentum = static_cast<float>(o.momentum);
  switch (o.kind) {
    case OptimizerKind::sgd:
      add_states();
      g.add(GPUNN_OP_SGD_UPDATE, "optimizer",
            Attributes::of(gpunn_sgd_attrs{.struct_size = 0,
                                           .momentum = momentum,
                                           .weight_decay = weight_decay,
                                           .nesterov = o.nesterov,
                                           .decayed = c.layout.decayed}),
            inputs);
      return;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      inputs.push_back(step);
      add_states();
      g.add(GPUNN_OP_ADAM_UPDATE, "optimizer",
            Attributes::of(gpunn_adam_attrs{.struct_size = 0,
                                            .beta1 = static_cast<float>(o.beta1),
                                            .beta2 = static_cast<float>(o.beta2),
                                            .epsilon = static_cast<float>(o.epsilon),
                                            .weight_decay = weight_decay,
                                            .decoupled = o.kind == OptimizerKind::adamw,
                                            .decayed = c.layout.decayed}),
            inputs);
      return;
    case OptimizerKind::rmsprop:
      add_states();
      g.add(GPUNN_OP_RMSPROP_UPDATE, "optimizer",
            Attributes::of(gpunn_rmsprop_attrs{.struct_size = 0,
                                               .alpha = static_cast<float>(o.alpha),
                                               .epsilon = static_cast<float>(o.epsilon),
                                               .momentum = momentum,
                                               .weight_decay = weight_decay,
                                               .reserved = 0,
                                               .decayed = c.layout.decayed}),
            inputs);
      return;
  }
}

void add_advance(Graph& g, ValueId counter) {
  g.add(GPUNN_OP_ADVANCE, "counters",
        Attributes::of(gpunn_advance_attrs{.struct_size = 0, .reserved = 0, .increment = 1}), {counter});
}

// What an op makes of `x`, of the same type, in a variable that outlives the step.
void add_kept(Graph& g, const char* name, gpunn_op op, ValueId x) {
  const TensorType type = g.value(x).type;
  const ValueId kept = g.add_value(name, type, Storage::state);
  g.add_into(op, name, {}, {x}, {kept});
}

void add_probabilities(Graph& g, const ProgramContext& c, ValueId output) {
  add_kept(g, variable::kProbabilities, ends_in_softmax(c.experiment) ? GPUNN_OP_COPY : GPUNN_OP_SOFTMAX, output);
}

ValueId add_totals(Graph& g, const char* name) { return g.add_value(name, {DType::f64, {4}}, Storage::state); }

// What every evaluation does with a batch: the model's output, each row's loss, and the totals.
struct Evaluation {
  ValueId step, output, losses;
};

Evaluation add_evaluation(Graph& g, const ProgramContext& c, const SplitType& split, int64_t batch_size) {
  const auto [step, output, batch] = add_inference(g, c, split, batch_size);
  const ValueId losses = add_loss(g, c, output, batch.label);
  g.add(GPUNN_OP_METRICS_ACCUMULATE, "metrics", {},
        {losses, batch.count, add_totals(g, variable::kEvalTotals), output, batch.label});
  return {step, output, losses};
}

}  // namespace

std::vector<std::string> optimizer_states(const OptimizerConfig& config) {
  switch (config.kind) {
    case OptimizerKind::sgd:
      return config.momentum != 0 ? std::vector<std::string>{"velocity"} : std::vector<std::string>{};
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return {"m", "v"};
    case OptimizerKind::rmsprop:
      return config.momentum != 0 ? std::vector<std::string>{"square", "velocity"} : std::vector<std::string>{"square"};
  }
  return {};
}

Sampling training_sampling(const Experiment& experiment, const SplitType& split) {
  const DataConfig& data = experiment.data;
  return {.rows = split.rows(),
          .batch = data.batch_size,
          .shuffle = data.shuffle,
          .drop_last = data.drop_last,
          .seed = experiment.seed};
}

Sampling evaluation_sampling(const SplitType& split, int64_t batch) { return {.rows = split.rows(), .batch = batch}; }

Graph training_program(const ProgramContext& c, const SplitType& split) {
  Graph g;
  const ValueId step = add_counter(g, variable::kStep);
  const ValueId parameters = g.add_value(variable::kParameters, c.layout.type(), Storage::parameters);
  const ValueId gradients = g.add_value(variable::kGradients, c.layout.type(), Storage::gradients);
  const Batch batch = add_batch(g, split, step, training_sampling(c.experiment, split));

  // The model's parameters are views of one array; what is differentiated are the views.
  const std::vector<ValueId> views = add_parameter_views(g, c.layout, parameters);
  const ValueId output = nn::build_forward(g, c.experiment.model, batch.x, views,
                                           {.training = true, .seed = c.experiment.seed, .step = step});
  const ValueId losses = add_loss(g, c, output, batch.label);
  const ValueId loss = g.add1(GPUNN_OP_MEAN_ROWS, "loss.mean", {}, {losses, batch.count});
  bind_gradients(g, c.layout, graph::add_gradients(g, loss, views), gradients);

  const ValueId rates =
      g.add_value(variable::kLearningRates, {DType::f32, {std::max<int64_t>(c.total_steps, 1)}}, Storage::state);
  const ValueId rate = g.add1(GPUNN_OP_TABLE_LOAD, "learning_rate", {}, {rates, step});
  add_optimizer(g, c, parameters, gradients, rate, step);

  g.add(GPUNN_OP_METRICS_ACCUMULATE, "metrics", {},
        {losses, batch.count, add_totals(g, variable::kTotals), output, batch.label});
  const ValueId history = g.add_value(variable::kLossHistory, {DType::f32, {kLossHistorySize}}, Storage::state);
  g.add(GPUNN_OP_TABLE_STORE, "loss.history", {}, {history, step, loss});
  add_advance(g, step);
  return g;
}

Graph evaluation_program(const ProgramContext& c, const SplitType& split, int64_t batch_size) {
  Graph g;
  const Evaluation evaluation = add_evaluation(g, c, split, batch_size);
  add_advance(g, evaluation.step);
  return g;
}

Graph inspection_program(const ProgramContext& c, const SplitType& split, int64_t batch_size) {
  Graph g;
  const Evaluation evaluation = add_evaluation(g, c, split, batch_size);
  add_kept(g, variable::kRowOutputs, GPUNN_OP_COPY, evaluation.output);
  add_kept(g, variable::kRowLosses, GPUNN_OP_COPY, evaluation.losses);
  add_probabilities(g, c, evaluation.output);
  add_advance(g, evaluation.step);
  return g;
}

Graph prediction_program(const ProgramContext& c, const SplitType& split, int64_t batch_size) {
  Graph g;
  const auto [step, output, batch] = add_inference(g, c, split, batch_size);
  add_probabilities(g, c, output);
  add_advance(g, step);
  return g;
}

}  // namespace gpunn::training
