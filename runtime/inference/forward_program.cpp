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
#include "nn/model.hpp"
#include "tasks/task.hpp"
#include "training/programs.hpp"

namespace gpunn::inference {

using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

// A variable that the host writes before the first program runs.
ValueId constant(Graph& g, const char* name, TensorType type, Storage storage) {
  const ValueId value = g.add_value(name, std::move(type), storage);
  g.value(value).constant = true;
  return value;
}

std::vector<ValueId> flat_views(Graph& g, const char* name, const training::ParameterLayout& layout, Storage storage) {
  if (layout.total == 0) return {};
  return training::add_parameter_views(g, layout, constant(g, name, layout.type(), storage));
}

// The first rows of a variable with room for `max_batch` rows of the value's type.
ValueId output_view(Graph& g, const char* name, TensorType type, int64_t max_batch) {
  TensorType whole = type;
  whole.shape.front() = max_batch;
  const ValueId variable = g.add_value(name, whole, Storage::state);
  return g.add_view(std::string(name) + ".rows", variable, std::move(type));
}

// The names are the file's, the layers are the file's: nothing but this says that they are of one model.
void require_outputs_named(const ForwardModel& model, const TensorType& scores) {
  const auto named = static_cast<int64_t>(model.info.fields.target().names.size());
  if (scores.shape.size() == 2 && scores.shape[1] == named) return;
  throw Error("the model's last layer gives " + to_string(scores) + ", and the file names " + std::to_string(named) +
              " outputs: the two are not of one model");
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

fields::Standardiser input_standardiser(const ModelInfo& info, DType samples) {
  const Field& input = info.fields.input();
  return {{samples, batch_shape(input.type.shape, 1)}, input.mean, input.stddev};
}

bool takes_samples(const ModelInfo& info, DType samples) {
  return fields::device_type({samples, {}}).dtype == info.fields.input().type.dtype;
}

ForwardModel forward_model(Experiment experiment, ModelInfo info, uint64_t alignment, int64_t max_batch) {
  Field& input = info.fields.input();
  if (!experiment.data.mean.empty()) input.mean = experiment.data.mean;
  if (!experiment.data.stddev.empty()) input.stddev = experiment.data.stddev;
  const auto channels = static_cast<std::size_t>(input.type.shape.front());
  if (input.mean.size() != channels || input.stddev.size() != channels) {
    throw Error("data.mean and data.stddev must have one number for each of the " + std::to_string(channels) +
                    " channels of the model, have " + std::to_string(input.mean.size()) + " and " +
                    std::to_string(input.stddev.size()),
                ExitCode::usage);
  }
  ForwardModel model;
  model.layout = training::lay_out(nn::model_parameters(experiment.model, input.type.shape),
                                   training::parameter_alignment(experiment.precision, alignment));
  model.buffers = training::lay_out(nn::model_buffers(experiment.model, input.type.shape), alignment);
  model.experiment = std::move(experiment);
  model.info = std::move(info);
  model.max_batch = max_batch;
  model.alignment = alignment;
  return model;
}

ValueId find_variable(const Graph& program, const char* name, Storage storage) {
  const auto found = std::ranges::find_if(program.values(), [&](const graph::Value& one) {
    return one.view_of == graph::kNoValue && one.storage == storage && one.name == name;
  });
  return found == program.values().end() ? graph::kNoValue : static_cast<ValueId>(found - program.values().begin());
}

TensorType output_row(const Graph& program, const char* output) {
  const TensorType& type = program.value(find_variable(program, output)).type;
  return {type.dtype, {type.shape.begin() + 1, type.shape.end()}};
}

ForwardProgram forward_program(const ForwardModel& model, int64_t rows, BatchNorms batch_norms,
                               const execution::Backend* eight_bits_on) {
  Graph g;
  const Field& input = model.info.fields.input();
  const TensorType channels{DType::f32, {input.type.shape.front()}};
  const ValueId samples = g.add_value(variable::kInput, forward_rows(input.type, model.max_batch), Storage::data);
  const ValueId all = g.add_value(variable::kRows, {DType::i32, {model.max_batch}}, Storage::data);
  const ValueId index = g.add_view("input.index", all, {DType::i32, {rows}});
  const ValueId scale = constant(g, training::variable::kScale, channels, Storage::data);
  const ValueId shift = constant(g, training::variable::kShift, channels, Storage::data);
  const ValueId x = g.add1(GPUNN_OP_GATHER_NORMALIZE, "input", {}, {samples, index, scale, shift});

  const std::vector<ValueId> parameters =
      flat_views(g, training::variable::kParameters, model.layout, Storage::parameters);
  const std::vector<ValueId> buffers = flat_views(g, training::variable::kBuffers, model.buffers, Storage::state);
  tasks::ModelOutputs outputs;
  outputs.last = nn::build_forward(
      g, model.experiment.model, x, parameters,
      {.training = false, .seed = model.experiment.seed, .buffers = buffers, .layers = &outputs.layers});

  std::vector<FoldedNorm> norms;
  if (batch_norms == BatchNorms::folded && model.passes.on(EnginePassId::fold_batch_norm)) norms = fold_batch_norms(g);
  if (!model.quantizers.empty()) insert_quantizers(g, tensors_to_quantize(g), model.quantizers);
  std::vector<EightBitOp> eight_bits;
  if (eight_bits_on != nullptr && model.passes.on(EnginePassId::eight_bits)) {
    eight_bits = use_eight_bits(g, *eight_bits_on, FloatWeights::kept);
  }
  if (const std::optional<DType> half = half_of(model.experiment.precision)) {
    outputs.last = compiler::use_half_precision(g, 0, *half, outputs.last);
  }

  const ValueId logits = output_view(g, variable::kLogits, g.value(outputs.last).type, model.max_batch);
  g.add_into(GPUNN_OP_COPY, variable::kLogits, {}, {outputs.last}, {logits});
  if (model.has_task()) {
    add_predictions(g, model, outputs, [&](const TensorType& type) {
      return output_view(g, variable::kPredictions, type, model.max_batch);
    });
  }
  if (half_of(model.experiment.precision)) compiler::join_conversions(g, model.alignment);
  return {std::move(g), std::move(norms), std::move(outputs), std::move(eight_bits)};
}

}  // namespace gpunn::inference
