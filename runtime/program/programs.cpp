#include "program/programs.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compiler/autodiff.hpp"
#include "compiler/half_precision.hpp"
#include "compiler/join_conversions.hpp"
#include "compiler/recompute.hpp"
#include "fields/kind.hpp"
#include "fields/standardise.hpp"
#include "ops/op.hpp"
#include "program/accumulation.hpp"
#include "program/augmentation.hpp"
#include "program/gradient_buckets.hpp"
#include "program/loss_scale.hpp"
#include "program/optimizer_ops.hpp"
#include "program/part_sums.hpp"
#include "program/recomputed_stages.hpp"

namespace gpunn::training {

using graph::Attributes;
using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

ValueId add_counter(Graph& g, const char* name) { return g.add_value(name, {DType::i64, {}}, Storage::state); }

// Step programs that share the parameters share the buffers too.
ValueId add_flat_buffers(Graph& g, const ProgramContext& c) {
  if (c.buffers.total == 0) return graph::kNoValue;
  return g.add_value(variable::kBuffers, c.buffers.type(), Storage::state);
}

std::vector<ValueId> buffer_views(Graph& g, const ProgramContext& c, ValueId flat) {
  if (flat == graph::kNoValue) return {};
  return add_parameter_views(g, c.buffers, flat);
}

ValueId add_average_value(Graph& g, const ProgramContext& c) {
  return g.add_value(variable::kAverage, c.layout.type(), Storage::optimizer);
}

ValueId add_average_buffers(Graph& g, const ProgramContext& c) {
  if (c.buffers.total == 0) return graph::kNoValue;
  return g.add_value(variable::kAverageBuffers, c.buffers.type(), Storage::optimizer);
}

// Averaged weights give their layers other inputs than the weights of the last step do. The running statistics of the
// last step would not be those of the averaged model.
ValueId add_evaluated_buffers(Graph& g, const ProgramContext& c) {
  return c.experiment.ema > 0 ? add_average_buffers(g, c) : add_flat_buffers(g, c);
}

// Those that training made, or their average.
ValueId add_evaluated_parameters(Graph& g, const ProgramContext& c) {
  if (c.experiment.ema > 0) return add_average_value(g, c);
  return g.add_value(variable::kParameters, c.layout.type(), Storage::parameters);
}

// One number a step in a table that begins anew when it is full.
void add_history(Graph& g, const char* variable, const char* name, ValueId step, ValueId number) {
  const ValueId history = g.add_value(variable, {DType::f32, {kLossHistorySize}}, Storage::state);
  g.add(GPUNN_OP_TABLE_STORE, name, {}, {history, step, number});
}

std::vector<nn::InputValue> model_inputs(const ProgramContext& c, const Batch& batch) {
  std::vector<nn::InputValue> inputs;
  for (const Field* input : c.fields.of(Role::input)) {
    inputs.push_back({input->name, inputs.empty() ? batch.x : batch.fields.at(input->name)});
  }
  return inputs;
}

tasks::ModelOutputs add_model(Graph& g, const ProgramContext& c, const Batch& batch,
                              const std::vector<ValueId>& parameters, nn::ForwardOptions options) {
  tasks::ModelOutputs outputs;
  options.seed = c.experiment.seed;
  options.layers = &outputs.layers;
  std::set<std::size_t> wide;
  options.wide = &wide;
  const std::size_t first = g.nodes().size();
  outputs.last = nn::build_forward(g, c.experiment.model, model_inputs(c, batch), parameters, options).front();
  if (const std::optional<DType> half = half_of(c.experiment.precision)) {
    outputs.last = compiler::use_half_precision(g, first, *half, outputs.last, wide);
  }
  return outputs;
}

// Has the activations of the stages of training.recompute computed again by the nodes from `backward` on.
void recompute(Graph& g, const ProgramContext& c, compiler::NodeRange forward, std::size_t backward,
               const std::map<std::string, ValueId>& layers) {
  if (c.experiment.recompute.empty()) return;
  std::map<std::string, uint64_t> bytes;
  for (const auto& [name, output] : layers) bytes.emplace(name, g.value(output).type.bytes());
  compiler::recompute_stages(g, forward, backward, stage_numbers(c.experiment, recomputed_stages(c.experiment, bytes)));
}

// The gradient of each parameter; kNoValue of the frozen ones, for which nothing is computed.
std::vector<ValueId> add_trained_gradients(Graph& g, const ParameterLayout& layout, ValueId loss,
                                           const std::vector<ValueId>& views, ValueId scale) {
  std::vector<ValueId> trained;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!layout.rules[i].frozen) trained.push_back(views[i]);
  }
  const std::vector<ValueId> found = compiler::add_gradients(g, loss, trained, scale);
  std::vector<ValueId> gradients(views.size(), graph::kNoValue);
  std::size_t next = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!layout.rules[i].frozen) gradients[i] = found[next++];
  }
  return gradients;
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

void add_advance(Graph& g, ValueId counter, int64_t increment = 1) {
  g.add(GPUNN_OP_ADVANCE, "counters",
        Attributes::of(gpunn_advance_attrs{.struct_size = 0, .reserved = 0, .increment = increment}), {counter});
}

// What an op makes of `x`, of the same type, in a variable that outlives the step.
void add_kept(Graph& g, const std::string& name, gpunn_op op, ValueId x) {
  const TensorType type = g.value(x).type;
  const ValueId kept = g.add_value(name, type, Storage::state);
  g.add_into(op, name, {}, {x}, {kept});
}

// One kernel for the weights of half precision, where there are several.
void join_weights(Graph& g, const ProgramContext& c) {
  if (half_of(c.experiment.precision) && c.alignment > 0) compiler::join_conversions(g, c.alignment);
}

// The loss of each row times its weight, if samples have weights.
ValueId add_weighted(Graph& g, const SplitType& split, const Batch& batch, ValueId losses) {
  for (const DeviceField& field : split.fields) {
    if (!field.is_weight) continue;
    const ValueId weight = g.add_view("batch.weight", batch.fields.at(field.name), g.value(losses).type);
    losses = g.add1(GPUNN_OP_MUL, "loss.weighted", {}, {losses, weight});
  }
  return losses;
}

// The accumulators of a step program and their values.
struct MetricSums {
  std::vector<tasks::Accumulator> accumulators;
  std::vector<ValueId> values;

  void add(Graph& g, const ProgramContext& c, const tasks::BatchResults& results) const {
    for (std::size_t i = 0; i < values.size(); ++i) accumulators[i].add(g, c.of_task(), results, values[i]);
  }
};

MetricSums add_sums(Graph& g, const ProgramContext& c, tasks::Phase phase) {
  MetricSums sums{tasks::accumulators_of(c.task(), c.of_task(), phase), {}};
  for (const tasks::Accumulator& one : sums.accumulators) {
    sums.values.push_back(g.add_value(accumulator_variable(phase, one.name), one.type, Storage::state));
  }
  return sums;
}

// What every evaluation does with a batch: the model's outputs, each row's loss, and the sums of the metrics.
struct EvaluationValues {
  ValueId step = graph::kNoValue;
  tasks::ModelOutputs outputs;
  ValueId losses = graph::kNoValue;
};

EvaluationValues add_evaluation(Graph& g, const ProgramContext& c, const SplitType& split, int64_t batch_size) {
  const ValueId step = add_counter(g, variable::kEvalStep);
  const ValueId parameters = add_evaluated_parameters(g, c);
  const Batch batch = add_batch(g, split, {step, step}, evaluation_sampling(split, batch_size));
  tasks::ModelOutputs outputs =
      add_model(g, c, batch, add_parameter_views(g, c.layout, parameters),
                {.training = false, .step = step, .buffers = buffer_views(g, c, add_evaluated_buffers(g, c))});
  const ValueId losses = add_weighted(g, split, batch, c.task().add_evaluation_loss(g, c.of_task(), outputs, batch));
  add_sums(g, c, tasks::Phase::evaluation).add(g, c, {outputs, batch, losses});
  return {step, std::move(outputs), losses};
}

}  // namespace

std::string accumulator_variable(tasks::Phase phase, const std::string& name) {
  return phase == tasks::Phase::evaluation ? "eval." + name : name;
}

SplitType split_type(const std::string& name, const Schema& schema, const Split& split) {
  SplitType type{name, fields::device_type(split.samples)};
  for (const Field& field : schema) {
    if (&field == &schema.input() || field.role == Role::id) continue;
    const auto values = split.fields.find(field.name);
    if (values == split.fields.end() && !split.fields.empty()) continue;
    DeviceField wanted{.name = field.name,
                       .row = field.type,
                       .is_weight = field.role == Role::weight,
                       .lies_in_picture = field.role == Role::target && fields::kind_of(field).lies_in_picture(),
                       .border = field.ignored.value_or(0),
                       .is_input = field.role == Role::input};
    wanted.normalised = wanted.is_input && field.type.dtype == DType::u8 && fields::kind_of(field).is_normalised();
    if (values != split.fields.end()) {
      wanted.row = fields::device_type(values->second.type);
      wanted.row.shape.erase(wanted.row.shape.begin());
    }
    type.fields.push_back(std::move(wanted));
  }
  return type;
}

Sampling training_sampling(const Experiment& experiment, const SplitType& split) {
  const DataConfig& data = experiment.data;
  return {.rows = split.rows(),
          .batch = data.batch_size * experiment.accumulate,
          .shuffle = data.shuffle,
          .drop_last = data.drop_last,
          .seed = experiment.seed,
          .join_single = !split.brought};
}

Sampling evaluation_sampling(const SplitType& split, int64_t batch) { return {.rows = split.rows(), .batch = batch}; }

Graph training_program(const ProgramContext& c, const SplitType& split) {
  Graph g;
  const ValueId step = add_counter(g, variable::kStep);
  const ValueId parameters = g.add_value(variable::kParameters, c.layout.type(), Storage::parameters);
  const ValueId gradients = g.add_value(variable::kGradients, c.layout.trained_type(), Storage::gradients);
  const Sampling sampling = training_sampling(c.experiment, split);
  const Division division = division_of(c.experiment, c.ranks, sampling);
  const StepCounters counters{step, c.shifted ? add_counter(g, variable::kPosition) : step};
  const bool varies = sampling.has_partial_batch() || (split.ring && split.ring->varied);
  Batch batch{};
  PickedRows picked;
  if (division.divided) {
    picked = add_picked_rows(g, split, counters, sampling, division);
  } else {
    batch = add_batch(g, split, counters, sampling);
    add_augmentation(g, c, split, batch, step, step);
  }

  // The model's parameters are views of one array; what is differentiated are the views.
  const std::vector<ValueId> views = add_parameter_views(g, c.layout, parameters);
  const ValueId flat_buffers = add_flat_buffers(g, c);
  const std::vector<ValueId> buffers = division.divided ? std::vector<ValueId>() : buffer_views(g, c, flat_buffers);
  const int64_t parts = division.divided ? division.mine.count() : c.experiment.accumulate;
  // What dropout draws by is another number in each part.
  const bool counts_passes = parts > 1 || division.divided;
  const ValueId pass = counts_passes ? add_counter(g, variable::kPass) : step;
  const MetricSums metrics = add_sums(g, c, tasks::Phase::training);
  std::set<std::string> fixed;
  if (c.experiment.freeze_statistics) {
    for (std::string& norm : frozen_norms(c.experiment, c.layout.parameters, c.layout.rules, c.buffers.parameters)) {
      fixed.insert(std::move(norm));
    }
  }
  std::optional<LossScaleValues> scaling;
  if (scales_loss(c.experiment)) scaling = add_loss_scale(g);
  const ValueId scale = scaling ? scaling->scale : graph::kNoValue;
  const bool shards = shards_optimizer(c.experiment, c.ranks);
  const std::vector<distributed::Share> buckets = gradient_buckets(c.layout, bucket_elements(c.experiment));
  PartGradients sum(g, c.layout, division, gradients, {c.ranks, buckets, c.experiment.wire, shards});
  PartBuffers statistics(g, c.buffers, division, division.divided ? flat_buffers : graph::kNoValue);
  std::vector<ValueId> part_losses;
  for (int64_t part = 0; part < parts; ++part) {
    PartBatch rows;
    if (division.divided) {
      rows = add_part_batch(g, split, picked, division, division.mine.begin + part, varies);
      add_augmentation(g, c, split, rows.batch, step, pass);
    } else {
      rows.batch = parts == 1 ? batch : add_part(g, batch, part, parts);
      if (varies) rows.count = rows.batch.count;
    }
    const std::size_t first = g.nodes().size();
    const tasks::ModelOutputs outputs =
        add_model(g, c, rows.batch, views,
                  {.training = true,
                   .step = pass,
                   .count = rows.count,
                   .buffers = division.divided ? statistics.add_part() : buffers,
                   .fixed_buffers = fixed,
                   .world = c.experiment.global_batch_norm ? c.ranks.world : 1,
                   .counted = rows.count == graph::kNoValue ? rows.count : rows.batch.count});
    const compiler::NodeRange forward{first, g.nodes().size() - first};
    const ValueId losses =
        add_weighted(g, split, rows.batch, c.task().add_training_loss(g, c.of_task(), outputs, rows.batch));
    ValueId mean = g.add1(GPUNN_OP_MEAN_ROWS, "loss.mean", {}, {losses, rows.batch.count});
    if (rows.weight != graph::kNoValue) mean = g.add1(GPUNN_OP_MUL, "loss.mean", {}, {mean, rows.weight});
    const ValueId flat = sum.begin_part(part);
    const std::size_t backward = g.nodes().size();
    const std::vector<ValueId> found = add_trained_gradients(g, c.layout, mean, views, scale);
    recompute(g, c, forward, backward, outputs.layers);
    bind_gradients(g, c.layout, found, flat);
    if (!division.divided && part > 0) {
      add_to_mean(g, "gradients", gradients, flat, part, parts);
      add_to_mean(g, "loss.mean", part_losses.front(), mean, part, parts);
    } else {
      sum.end_part(part);
      part_losses.push_back(mean);
    }
    metrics.add(g, c, {outputs, rows.batch, losses});
    if (counts_passes) {
      // Behind the last part of this rank, those of the others.
      const bool last = part + 1 == parts;
      add_advance(g, pass, division.divided && last ? division.parts - parts + 1 : 1);
    }
  }
  ValueId loss = part_losses.front();
  if (division.divided) {
    // In the order in which their terms are there: sums over the ranks run one behind the other, beside other ops.
    loss = add_sum_of_parts(g, "loss.mean", part_losses, division);
    statistics.add_mean();
    const std::size_t sums = g.nodes().size();
    sum.add_sum();
    if (c.experiment.global_batch_norm && c.ranks.world > 1) move_behind_inputs(g, sums);
  }

  const ValueId rates =
      g.add_value(variable::kLearningRates, {DType::f32, {std::max<int64_t>(c.total_steps, 1)}}, Storage::state);
  const ValueId rate = g.add1(GPUNN_OP_TABLE_LOAD, "learning_rate", {}, {rates, step});
  UpdateValues values{.parameters = parameters, .gradients = gradients, .rate = rate, .step = step};
  ValueId finite = graph::kNoValue;
  if (scaling) {
    finite = add_unscaling(g, *scaling, gradients);
    values.step = add_update_count(g, *scaling, step);
  }
  const ParameterLayout updated = shards ? sharded(c.layout, buckets, c.ranks) : c.layout;
  const ValueId norm = add_gradient_bounds(g, c.experiment, updated, values);
  const std::size_t update = g.nodes().size();
  add_optimizer(g, c.experiment.optimizer, updated, values);
  if (shards) add_gather(g, buckets, c.ranks, parameters);
  if (c.experiment.ema > 0) {
    add_average(g, c.experiment.ema, c.layout.trained, add_average_value(g, c), parameters);
    if (flat_buffers != graph::kNoValue) {
      add_average(g, c.experiment.ema, c.buffers.total, add_average_buffers(g, c), flat_buffers);
    }
  }
  if (scaling) {
    undo_unless(g, c.layout, update, finite);
    add_scale_update(g, *scaling, finite);
  }

  add_history(g, variable::kLossHistory, "loss.history", step, loss);
  if (norm != graph::kNoValue) add_history(g, variable::kGradientNorms, "gradient_norm.history", step, norm);
  add_advance(g, step);
  if (c.shifted) add_advance(g, counters.position);
  join_weights(g, c);
  return g;
}

Graph batch_program(const ProgramContext& c, const SplitType& split) {
  Graph g;
  const ValueId step = add_counter(g, variable::kBatchStep);
  Batch batch = add_batch(g, split, {step, step}, training_sampling(c.experiment, split));
  add_augmentation(g, c, split, batch, step, step);
  add_kept(g, variable::kBatchSamples, GPUNN_OP_COPY, batch.x);
  for (const DeviceField& field : split.fields) {
    add_kept(g, variable::kBatchFields + field.name, GPUNN_OP_COPY, batch.fields.at(field.name));
  }
  add_kept(g, variable::kBatchCount, GPUNN_OP_COPY, batch.count);
  add_advance(g, step);
  return g;
}

Graph evaluation_program(const ProgramContext& c, const SplitType& split, int64_t batch_size) {
  Graph g;
  const EvaluationValues evaluation = add_evaluation(g, c, split, batch_size);
  add_advance(g, evaluation.step, split.ring ? 1 : c.ranks.world);
  join_weights(g, c);
  return g;
}

Graph inspection_program(const ProgramContext& c, const SplitType& split, int64_t batch_size,
                         const std::string& prefix) {
  Graph g;
  const EvaluationValues evaluation = add_evaluation(g, c, split, batch_size);
  const ValueId scores = c.task().add_scores(g, c.of_task(), evaluation.outputs);
  add_kept(g, prefix + variable::kRowScores, GPUNN_OP_COPY, scores);
  add_kept(g, prefix + variable::kRowLosses, GPUNN_OP_COPY, evaluation.losses);
  c.task().add_predictions(g, c.of_task(), evaluation.outputs, scores, [&](const TensorType& type) {
    return g.add_value(prefix + variable::kPredictions, type, Storage::state);
  });
  add_advance(g, evaluation.step);
  join_weights(g, c);
  return g;
}

}  // namespace gpunn::training
