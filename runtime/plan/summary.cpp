// `gpunn summary`: a training step built for no backend, and counted.
#include <gpunn/summary.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "common/files.hpp"
#include "common/input_file.hpp"
#include "common/text.hpp"
#include "compiler/memory_plan.hpp"
#include "compiler/recompute.hpp"
#include "config/yaml_tree.hpp"
#include "feed/evaluation_part.hpp"
#include "feed/model_samples.hpp"
#include "feed/targets.hpp"
#include "fields/kind.hpp"
#include "interchange/onnx/import.hpp"
#include "ops/op.hpp"
#include "program/augmentation.hpp"
#include "program/programs.hpp"
#include "runs/transfer.hpp"
#include "session/notices.hpp"
#include "session/training_length.hpp"
#include "tasks/task.hpp"

namespace gpunn {

namespace {

using graph::Graph;
using graph::Storage;
using graph::ValueId;

constexpr uint64_t kArenaAlignment = 256;  // as GPUs have it

// A model by itself has layers, and neither a model nor data.
bool is_model_file(const std::filesystem::path& file) {
  if (!is_file(file)) return false;  // load_experiment() says what is near
  if (interchange::is_onnx(file)) return true;
  const config::YamlNode root = config::parse_yaml(read_text(file, config::kLargestYamlFile), file.string());
  return root.find("layers") != nullptr && root.find("model") == nullptr && root.find("data") == nullptr;
}

// An experiment around a model, of the task that its last layer is for. Its data set only stands for one.
Experiment experiment_around(const std::filesystem::path& model, const std::vector<Override>& overrides) {
  std::string quoted;
  for (const char c : absolute_path(model).string()) quoted += c == '\'' ? "''" : std::string(1, c);
  const std::string text = "model: {file: '" + quoted + "'}\ndata: ";
  Experiment experiment = parse_experiment(text + "points\n", model.string(), overrides);
  for (const tasks::Task* task : tasks::all()) {
    if (!task->is_of_layer(experiment.model.output_layer().type) || task->name() == experiment.task) continue;
    return parse_experiment("task: " + std::string(task->name()) + "\n" + text + "drawn_digits\n", model.string(),
                            overrides);
  }
  return experiment;
}

// What the model makes of a batch: each layer's output, and what it takes.
struct ForwardPass {
  Graph graph;
  std::vector<Shape> outputs;           // by layer
  std::map<std::string, double> flops;  // by node's name, which is its layer's
};

double flops_of(const Graph& g, const graph::Node& node) { return ops::flops_of(g.signature(node)); }

ForwardPass forward_pass(const Experiment& experiment, const nn::SampleTypes& samples) {
  Graph g;
  const std::vector<nn::InputValue> inputs = nn::add_inputs(g, samples, experiment.data.batch_size);
  const ValueId step = g.add_value("step", {DType::i64, {}}, Storage::state);
  const auto values = [&](const std::vector<nn::Parameter>& tensors, Storage storage) {
    std::vector<ValueId> ids;
    for (const nn::Parameter& t : tensors) ids.push_back(g.add_value(t.name, {DType::f32, t.shape}, storage));
    return ids;
  };
  const std::vector<ValueId> parameters = values(nn::model_parameters(experiment.model, samples), Storage::parameters);
  std::map<std::string, ValueId> layers;
  nn::build_forward(g, experiment.model, inputs, parameters,
                    {.training = true,
                     .seed = experiment.seed,
                     .step = step,
                     .buffers = values(nn::model_buffers(experiment.model, samples), Storage::state),
                     .layers = &layers});
  ForwardPass pass;
  for (const LayerSpec& layer : experiment.model.layers) {
    pass.outputs.push_back(g.value(layers.at(layer.name)).type.shape);
  }
  for (const graph::Node& node : g.nodes()) pass.flops[node.name] += flops_of(g, node);
  pass.graph = std::move(g);
  return pass;
}

// The layer that a node of a step belongs to: of its own name, or one of the gradient's.
std::string layer_of_node(const std::string& node) {
  for (const std::string_view ending :
       {std::string_view(".backward"), std::string_view(".gradient"), compiler::kRecomputedSuffix}) {
    if (!node.ends_with(ending)) continue;
    const std::string value = node.substr(0, node.size() - ending.size());
    return value.substr(0, value.rfind(':'));  // of an op with several outputs "bn1:0"
  }
  return node;
}

void add_layers(const Experiment& experiment, const training::ParameterLayout& layout,
                const training::ParameterLayout& buffers, const ForwardPass& forward, const Graph& step,
                SummaryReport& report) {
  std::map<std::string, SummaryLayer> layers;
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    SummaryLayer& layer = layers[layout.parameters[i].layer];
    const int64_t numbers = element_count(layout.parameters[i].shape);
    layer.parameters += numbers;
    layer.trainable += step.nodes().empty() || layout.rules[i].frozen ? 0 : numbers;
  }
  for (const nn::Parameter& buffer : buffers.parameters) {
    layers[buffer.layer].buffers += element_count(buffer.shape);
  }
  for (const auto& [name, flops] : forward.flops) layers[name].forward_flops += flops;
  for (const graph::Node& node : step.nodes()) layers[layer_of_node(node.name)].step_flops += flops_of(step, node);
  for (std::size_t i = 0; i < experiment.model.layers.size(); ++i) {
    const LayerSpec& spec = experiment.model.layers[i];
    SummaryLayer layer = layers[spec.name];
    layer.name = spec.name;
    layer.type = spec.type;
    layer.output = forward.outputs[i];
    report.layers.push_back(std::move(layer));
  }
}

uint64_t bytes_in(const Graph& g, Storage storage) {
  uint64_t bytes = 0;
  for (const graph::Value& value : g.values()) {
    if (value.storage == storage && value.view_of == graph::kNoValue) bytes += value.type.bytes();
  }
  return bytes;
}

// What a summary takes of a data set, or of one that has to be imagined.
struct SummaryData {
  training::SplitType split;
  nn::SampleTypes samples;
  Schema fields;
  int64_t steps = 1;
  bool trains = true;  // false: the task has no loss for such outputs
};

SummaryReport summarize_step(const Experiment& experiment, const SummaryData& data) {
  std::vector<nn::Parameter> parameters = nn::model_parameters(experiment.model, data.samples);
  std::vector<training::UpdateRule> rules = training::update_rules(parameters, experiment);
  constexpr uint64_t kWithoutGaps = sizeof(float);
  const training::ParameterLayout layout = training::lay_out(std::move(parameters), std::move(rules), kWithoutGaps);
  const training::ParameterLayout buffers =
      training::lay_out(nn::model_buffers(experiment.model, data.samples), kWithoutGaps);
  training::frozen_norms(experiment, layout.parameters, layout.rules, buffers.parameters);
  const ForwardPass forward = forward_pass(experiment, data.samples);
  const std::string& last = experiment.model.output_layer().type;
  const bool trains = tasks::find(experiment.task).trains_layer(last) && data.trains;
  const Graph step = trains ? training::training_program({.experiment = experiment,
                                                          .layout = layout,
                                                          .fields = data.fields,
                                                          .outputs = data.fields.target().count(),
                                                          .total_steps = data.steps,
                                                          .buffers = buffers},
                                                         data.split)
                            : Graph();

  SummaryReport report;
  report.model = experiment.model.name;
  report.notice =
      training::joined(join(experiment.notes, "\n"), training::moving_statistics_notice(experiment, layout, buffers));
  if (!trains) {
    report.notice = training::joined(
        report.notice, !data.trains
                           ? "the model gives images, and a task that compares them is in an experiment: "
                             "the numbers are those of a call"
                           : "the model ends in " + last + ", which has no loss: it is called, and not trained");
  }
  report.sample = data.samples.front().type.shape;
  report.batch_size = experiment.data.batch_size;
  report.samples_per_step = experiment.data.batch_size * experiment.accumulate;
  add_layers(experiment, layout, buffers, forward, step, report);
  report.parameters = layout.count();
  report.trainable = trains ? layout.trained_count() : 0;
  report.buffers = buffers.count();
  for (const auto& [name, flops] : forward.flops) report.forward_flops += flops;
  for (const graph::Node& node : step.nodes()) report.step_flops += flops_of(step, node);
  report.parameter_bytes = layout.type().bytes() + buffers.type().bytes();
  report.gradient_bytes = bytes_in(step, Storage::gradients);
  report.optimizer_bytes = bytes_in(step, Storage::optimizer);
  const Graph& run = trains ? step : forward.graph;
  const std::vector<uint64_t> no_workspaces(run.nodes().size(), 0);
  report.activation_bytes = compiler::plan_memory(run, no_workspaces, kArenaAlignment).arena_bytes;
  report.total_bytes =
      report.parameter_bytes + report.gradient_bytes + report.optimizer_bytes + report.activation_bytes;
  return report;
}

std::string samples_text(const nn::SampleTypes& samples) {
  if (samples.size() == 1) return to_string(samples.front().type.shape);
  std::vector<std::string> parts;
  for (const auto& [name, type] : samples) parts.push_back(name + " " + to_string(type));
  return join(parts, ", ");
}

// A sample of each input of a model file, by what the file says of them.
nn::SampleTypes named_samples(const ModelSpec& model) {
  nn::SampleTypes samples;
  for (const InputSpec& input : model.inputs) {
    if (input.shape.empty() && !input.dtype) {
      throw Error(model.file.string() +
                      (model.inputs.size() == 1
                           ? ": a model without data, and it names no input: give the shape of a sample, as "
                             "--input 3,224,224"
                           : ": a model without data: give the shape of its input '" + input.name + "' in the file"),
                  ExitCode::usage);
    }
    samples.push_back({input.name, {input.dtype.value_or(DType::f32), input.shape}});
  }
  return samples;
}

// Samples of a shape that is given.
nn::SampleTypes given_sample(const ModelSpec& model, const Shape& shape) {
  if (model.inputs.size() == 1) return nn::one_sample(shape);
  throw Error("--input is the shape of a sample of a model with one input; " + model.file.string() + " takes " +
                  std::to_string(model.inputs.size()) + ", whose shapes are in the file",
              ExitCode::usage);
}

// In as many classes as the model tells apart.
SummaryReport summarize_without_data(const Experiment& experiment, const nn::SampleTypes& of_model) {
  const Shape output = nn::output_shape(experiment.model, of_model);
  const std::optional<Field> target = tasks::find(experiment.task).imagined_target(output);
  Schema schema;
  schema.target() = target ? *target : fields::target_field("numbers", {"0"});
  schema.input().name = of_model.front().name;
  schema.input().kind = fields::input_kind(of_model.front().type);
  for (std::size_t i = 1; i < of_model.size(); ++i) {
    schema.fields.push_back({.name = of_model[i].name,
                             .kind = std::string(fields::input_kind(of_model[i].type)),
                             .type = of_model[i].type});
  }
  Split split;
  split.samples = of_model.front().type;
  split.samples.shape.insert(split.samples.shape.begin(), experiment.data.batch_size * experiment.accumulate);
  SummaryReport report = summarize_step(experiment, {.split = training::split_type("train", schema, split),
                                                     .samples = of_model,
                                                     .fields = schema,
                                                     .trains = target.has_value()});
  report.data = "samples " + samples_text(of_model) + ", as given";
  if (const auto start = training::find_start(experiment, of_model)) report.start = start->report.text();
  return report;
}

SummaryReport summarize_with_data(const Experiment& experiment) {
  const Dataset dataset = training::sizes_for_training(experiment.data);
  const training::TrainingLength length = training::training_length(experiment, dataset);
  training::require_augmentable(experiment, dataset);
  training::require_targets(experiment, dataset);
  training::require_weights(dataset);
  training::require_samples(experiment, dataset);
  const auto start = training::find_start(experiment, training::model_samples(dataset));
  SummaryReport report =
      summarize_step(experiment, {.split = training::split_type("train", dataset.fields, dataset.train),
                                  .samples = training::model_samples(dataset),
                                  .fields = dataset.fields,
                                  .steps = length.steps});
  report.data = training::data_text(dataset);
  if (start) report.start = start->report.text();
  report.notice = training::joined(training::fallback_notice(dataset), report.notice);
  return report;
}

}  // namespace

SummaryReport summarize(const Experiment& experiment, const Shape& input) {
  return summarize_without_data(
      experiment, input.empty() ? named_samples(experiment.model) : given_sample(experiment.model, input));
}

SummaryReport summarize(const SummaryRequest& request) {
  const bool model_alone = is_model_file(request.file);
  const Experiment experiment = model_alone ? experiment_around(request.file, request.overrides)
                                            : load_experiment(request.file, request.overrides);
  if (!request.input.empty()) return summarize(experiment, request.input);
  if (!model_alone) return summarize_with_data(experiment);
  return summarize_without_data(experiment, named_samples(experiment.model));
}

}  // namespace gpunn
