#include "inference/forward_program.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/half_precision.hpp"
#include "compiler/join_conversions.hpp"
#include "feed/model_samples.hpp"
#include "fields/kind.hpp"
#include "nn/model.hpp"
#include "program/programs.hpp"
#include "tasks/task.hpp"

namespace gpunn::inference {

using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

// A variable that the host writes before the first program runs.
ValueId constant(Graph& g, const std::string& name, TensorType type, Storage storage) {
  const ValueId value = g.add_value(name, std::move(type), storage);
  g.value(value).constant = true;
  return value;
}

std::vector<ValueId> flat_views(Graph& g, const char* name, const training::ParameterLayout& layout, Storage storage) {
  if (layout.total == 0) return {};
  return training::add_parameter_views(g, layout, constant(g, name, layout.type(), storage));
}

// The first rows of a variable with room for `max_batch` rows of the value's type.
ValueId output_view(Graph& g, const std::string& name, TensorType type, int64_t max_batch) {
  TensorType whole = type;
  whole.shape.front() = max_batch;
  const ValueId variable = g.add_value(name, whole, Storage::state);
  return g.add_view(name + ".rows", variable, std::move(type));
}

// The first rows of an input, as the model takes them.
ValueId add_input(Graph& g, const ForwardModel& model, std::size_t number, int64_t rows) {
  const ForwardInput& input = model.inputs[number];
  const std::string name = variable::numbered(variable::kInput, number);
  const ValueId samples = g.add_value(name, forward_rows(input.sample, model.max_batch), Storage::data);
  if (!input.is_normalised()) return g.add_view(name + ".first", samples, forward_rows(input.sample, rows));
  const TensorType channels{DType::f32, {input.sample.shape.front()}};
  ValueId all = find_variable(g, variable::kRows, Storage::data);
  if (all == graph::kNoValue) all = g.add_value(variable::kRows, {DType::i32, {model.max_batch}}, Storage::data);
  const ValueId index = g.add_view(name + ".index", all, {DType::i32, {rows}});
  const ValueId scale = constant(g, variable::numbered(training::variable::kScale, number), channels, Storage::data);
  const ValueId shift = constant(g, variable::numbered(training::variable::kShift, number), channels, Storage::data);
  return g.add1(GPUNN_OP_GATHER_NORMALIZE, name, {}, {samples, index, scale, shift});
}

// The names are the file's, the layers are the file's: nothing but this says that they are of one model.
void require_outputs_named(const ForwardModel& model, const TensorType& scores) {
  const auto named = static_cast<int64_t>(model.info.fields.target().names.size());
  if (scores.shape.size() == 2 && scores.shape[1] == named) return;
  throw Error("the model's last layer gives " + to_string(scores) + ", and the file names " + std::to_string(named) +
              " outputs: the two are not of one model");
}

// A copy of each output, so that passes see a reader of it and leave it as it is, whatever other layers read it.
void keep_outputs(Graph& g, std::vector<ValueId>& given) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string name = "output." + std::to_string(i);
    const ValueId kept = g.add_value(name, g.value(given[i]).type, Storage::arena);
    g.add_into(GPUNN_OP_COPY, name, {}, {given[i]}, {kept});
    given[i] = kept;
  }
}

// What the task makes of the outputs.
void add_predictions(Graph& g, const ForwardModel& model, const tasks::ModelOutputs& outputs,
                     const tasks::PlaceOf& place) {
  const tasks::Task& task = tasks::find(model.experiment.task);
  const tasks::TaskContext context{.experiment = model.experiment,
                                   .outputs = static_cast<int64_t>(model.info.fields.target().names.size()),
                                   .target = &model.info.fields.target()};
  const TensorType type = g.value(outputs.last).type;
  const bool named = task.answers().named;
  if (named && type.shape.size() != 2) require_outputs_named(model, type);
  const ValueId scores = task.add_scores(g, context, outputs);
  if (named) require_outputs_named(model, g.value(scores).type);
  task.add_predictions(g, context, outputs, scores, place);
}

}  // namespace

TensorType forward_rows(const TensorType& row, int64_t rows) {
  TensorType type = row;
  type.shape = batch_shape(row.shape, rows);
  return type;
}

std::string variable::numbered(const char* name, std::size_t number) {
  return number == 0 ? name : std::string(name) + "." + std::to_string(number);
}

std::vector<std::string> ForwardModel::output_variables() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::max<std::size_t>(experiment.model.outputs.size(), 1); ++i) {
    names.push_back(variable::numbered(variable::kLogits, i));
  }
  if (has_task()) names.emplace_back(variable::kPredictions);
  return names;
}

fields::Standardiser input_standardiser(const ForwardInput& input, DType samples) {
  return {{samples, batch_shape(input.sample.shape, 1)}, input.mean, input.stddev};
}

bool takes_samples(const ForwardInput& input, DType samples) {
  return fields::device_type({samples, {}}).dtype == input.sample.dtype;
}

namespace {

ForwardInput input_of(const Field& field) {
  ForwardInput input{.name = field.name, .sample = field.type, .mean = field.mean, .stddev = field.stddev};
  if (!fields::kind_of(field).is_normalised()) {
    input.mean = input.stddev = {};
    return input;
  }
  const auto channels = static_cast<std::size_t>(field.type.shape.front());
  if (input.mean.size() == channels && input.stddev.size() == channels) return input;
  throw Error("data.mean and data.stddev must have one number for each of the " + std::to_string(channels) +
                  " channels of the model, have " + std::to_string(input.mean.size()) + " and " +
                  std::to_string(input.stddev.size()),
              ExitCode::usage);
}

}  // namespace

ForwardModel forward_model(Experiment experiment, ModelInfo info, uint64_t alignment, int64_t max_batch) {
  Field& input = info.fields.input();
  if (!experiment.data.mean.empty()) input.mean = experiment.data.mean;
  if (!experiment.data.stddev.empty()) input.stddev = experiment.data.stddev;
  ForwardModel model;
  const std::vector<const Field*> given = info.fields.of(Role::input);
  const nn::SampleTypes all = training::model_samples(info.fields);
  std::vector<std::string> names;
  for (const Field* one : given) names.push_back(one->name);
  nn::SampleTypes samples;
  for (const std::size_t number : nn::matched_inputs(experiment.model, names)) {
    model.inputs.push_back(input_of(*given[number]));
    samples.push_back(all[number]);
  }
  model.layout = training::lay_out(nn::model_parameters(experiment.model, samples),
                                   training::parameter_alignment(experiment.precision, alignment));
  model.buffers = training::lay_out(nn::model_buffers(experiment.model, samples), alignment);
  model.experiment = std::move(experiment);
  model.info = std::move(info);
  model.max_batch = max_batch;
  model.alignment = alignment;
  return model;
}

ValueId find_variable(const Graph& program, const std::string& name, Storage storage) {
  const auto found = std::ranges::find_if(program.values(), [&](const graph::Value& one) {
    return one.view_of == graph::kNoValue && one.storage == storage && one.name == name;
  });
  return found == program.values().end() ? graph::kNoValue : static_cast<ValueId>(found - program.values().begin());
}

TensorType output_row(const Graph& program, const std::string& output) {
  const TensorType& type = program.value(find_variable(program, output)).type;
  return {type.dtype, {type.shape.begin() + 1, type.shape.end()}};
}

ForwardProgram forward_program(const ForwardModel& model, int64_t rows, BatchNorms batch_norms,
                               const execution::Backend* eight_bits_on) {
  Graph g;
  std::vector<nn::InputValue> inputs;
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    inputs.push_back({model.inputs[i].name, add_input(g, model, i, rows)});
  }

  const std::vector<ValueId> parameters =
      flat_views(g, training::variable::kParameters, model.layout, Storage::parameters);
  const std::vector<ValueId> buffers = flat_views(g, training::variable::kBuffers, model.buffers, Storage::state);
  tasks::ModelOutputs outputs;
  std::vector<ValueId> given = nn::build_forward(
      g, model.experiment.model, inputs, parameters,
      {.training = false, .seed = model.experiment.seed, .buffers = buffers, .layers = &outputs.layers});
  if (given.size() > 1) keep_outputs(g, given);

  std::vector<FoldedNorm> norms;
  if (batch_norms == BatchNorms::folded && model.passes.on(EnginePassId::fold_batch_norm)) norms = fold_batch_norms(g);
  if (!model.quantizers.empty()) insert_quantizers(g, tensors_to_quantize(g), model.quantizers);
  std::vector<EightBitOp> eight_bits;
  if (eight_bits_on != nullptr && model.passes.on(EnginePassId::eight_bits)) {
    eight_bits = use_eight_bits(g, *eight_bits_on, FloatWeights::kept);
  }
  if (const std::optional<DType> half = half_of(model.experiment.precision)) {
    compiler::use_half_precision(g, 0, *half, given);
  }
  outputs.last = given.front();

  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string name = variable::numbered(variable::kLogits, i);
    g.add_into(GPUNN_OP_COPY, name, {}, {given[i]}, {output_view(g, name, g.value(given[i]).type, model.max_batch)});
  }
  if (model.has_task()) {
    add_predictions(g, model, outputs, [&](const TensorType& type) {
      return output_view(g, variable::kPredictions, type, model.max_batch);
    });
  }
  if (half_of(model.experiment.precision)) compiler::join_conversions(g, model.alignment);
  return {std::move(g), std::move(norms), std::move(outputs), std::move(eight_bits)};
}

}  // namespace gpunn::inference
