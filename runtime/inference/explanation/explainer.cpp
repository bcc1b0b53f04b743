#include "inference/explanation/explainer.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "common/text.hpp"
#include "compiler/autodiff.hpp"
#include "program/programs.hpp"
#include "tasks/task.hpp"

namespace gpunn::inference {

using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

constexpr const char* kCotangent = "explained.cotangent";  // of the logits
constexpr const char* kActivations = "explained.activations";
constexpr const char* kGradients = "explained.gradients";

// Of one image, without what the task makes of it, and in f32: gradients of half precision lose what is small.
ForwardModel for_explaining(ForwardModel model) {
  model.max_batch = 1;
  model.info.fields.target().names.clear();
  model.experiment.precision = Precision::fp32;
  return model;
}

// What a last layer of probabilities makes them of.
ValueId logits_of(const Graph& g, ValueId last) {
  for (const graph::Node& node : g.nodes()) {
    if (node.outputs.empty() || node.outputs.front() != last) continue;
    const bool normalises =
        node.op == GPUNN_OP_SOFTMAX || node.op == GPUNN_OP_LOG_SOFTMAX || node.op == GPUNN_OP_SIGMOID;
    if (normalises) return node.inputs.front();
  }
  return last;
}

bool has_places(const TensorType& type) {
  return type.dtype == DType::f32 && type.shape.size() == 4 && type.shape[2] * type.shape[3] > 1;
}

std::vector<float> read_floats(const execution::Variables& variables, const char* name) {
  const std::vector<std::byte> bytes = variables.read(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

bool are_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

template <class T>
void write_new(execution::Variables& variables, const char* name, const TensorType& type, Storage storage,
               const std::vector<T>& values) {
  variables.create(name, type, storage);
  variables.write(name, std::as_bytes(std::span(values)));
}

}  // namespace

Explainer::Explainer(const ForwardModel& model, Weights weights, const execution::Variables& shared,
                     BackendOpener open_backend)
    : model_(for_explaining(model)),
      weights_(std::move(weights)),
      shared_(shared),
      open_backend_(std::move(open_backend)) {}

const std::vector<std::string>& Explainer::layers_with_places() {
  if (!layers_.empty()) return layers_;
  const ForwardProgram forward = forward_program(model_, 1, BatchNorms::kept);
  for (const LayerSpec& layer : model_.experiment.model.layers) {
    const TensorType& type = forward.graph.value(forward.outputs.layers.at(layer.name)).type;
    if (has_places(type)) layers_.push_back(layer.name);
  }
  return layers_;
}

std::string Explainer::choose_layer(const std::string& wanted) {
  const std::vector<std::string>& names = layers_with_places();
  if (names.empty()) {
    throw Error("no layer of the model gives [channels, rows, columns], so there is nothing to map", ExitCode::usage);
  }
  if (wanted.empty()) return names.back();
  if (std::ranges::find(names, wanted) != names.end()) return wanted;
  std::vector<std::string> all;
  for (const LayerSpec& layer : model_.experiment.model.layers) all.push_back(layer.name);
  const std::string mappable = "; layers that have: " + join(names, ", ");
  if (std::ranges::find(all, wanted) != all.end()) {
    throw Error("the layer " + in_quotes(wanted) + " has no rows and columns that a map could show" + mappable,
                ExitCode::usage);
  }
  throw Error("the model has no layer " + in_quotes(wanted) + "; layers with rows and columns: " + join(names, ", ") +
                  did_you_mean(wanted, all),
              ExitCode::usage);
}

void Explainer::open() {
  auto runner = std::make_unique<execution::ProgramRunner>(open_backend_(model_.experiment));
  execution::Variables& variables = runner->variables();
  const auto give = [&](const char* name, const training::ParameterLayout& layout, Storage storage,
                        std::vector<float> Weights::*values) {
    if (layout.total == 0) return;
    if (weights_.parameters.empty()) return variables.share(name, shared_);
    write_new(variables, name, layout.type(), storage, weights_.*values);
  };
  give(training::variable::kParameters, model_.layout, Storage::parameters, &Weights::parameters);
  give(training::variable::kBuffers, model_.buffers, Storage::state, &Weights::buffers);
  write_inputs(variables, model_, weights_);
  runner_ = std::move(runner);
  weights_ = {};
}

void Explainer::prepare(const std::string& layer) {
  if (current_ && current_->layer == layer) return;
  ForwardProgram forward = forward_program(model_, 1, BatchNorms::kept);
  Graph& g = forward.graph;
  const ValueId logits = logits_of(g, forward.outputs.last), activations = forward.outputs.layers.at(layer);
  const TensorType type = g.value(activations).type;
  const TensorType seen = g.value(logits).type;
  const ValueId cotangent = g.add_value(kCotangent, seen, Storage::data);
  const ValueId gradients = compiler::add_gradients(g, {{logits, cotangent}}, {activations}).front();
  if (gradients == graph::kNoValue) {
    throw Error("the model's outputs do not depend on the layer " + in_quotes(layer), ExitCode::usage);
  }
  g.add_into(GPUNN_OP_COPY, kActivations, {}, {activations}, {g.add_value(kActivations, type, Storage::state)});
  g.add_into(GPUNN_OP_COPY, kGradients, {}, {gradients}, {g.add_value(kGradients, type, Storage::state)});

  if (runner_ == nullptr) open();
  current_.reset();
  for (const char* name : {kActivations, kGradients}) {  // of another layer
    if (runner_->variables().contains(name)) runner_->variables().drop(name);
  }
  current_ = LayerProgram{layer, type, seen.elements(), runner_->compile(std::move(g))};
  runner_->ready(current_->program);
}

LayerGradients Explainer::gradients(std::span<const std::byte> image, int64_t class_index, int64_t classes) {
  std::vector<float> cotangent(static_cast<std::size_t>(current_->logits));
  if (current_->logits == classes) {
    cotangent.at(static_cast<std::size_t>(class_index)) = 1;
  } else {  // one output for two classes: its sign tells them apart
    cotangent.at(0) = class_index == 1 ? 1.0F : -1.0F;
  }
  execution::Executable& executable = runner_->ready(current_->program);
  execution::Variables& variables = runner_->variables();
  variables.write(variable::kInput, image);
  variables.write(kCotangent, std::as_bytes(std::span(cotangent)));
  executable.run();
  const Shape& shape = current_->type.shape;
  LayerGradients found{shape[1], shape[2], shape[3], read_floats(variables, kActivations),
                       read_floats(variables, kGradients)};
  if (!are_finite(found.activations) || !are_finite(found.gradients)) {
    throw Error("the layer " + in_quotes(current_->layer) +
                " gives infinities or NaN for this image, of which no map can be made");
  }
  return found;
}

std::vector<Explanation> Explainer::explain(const ArrayView& input, std::span<const float> scores,
                                            const ExplainOptions& options) {
  const Shape& sample = model_.inputs.front().sample.shape;
  const auto rows = static_cast<std::size_t>(input.shape.front());
  const std::size_t classes = scores.size() / rows;
  prepare(choose_layer(options.layer));
  if (current_->logits != static_cast<int64_t>(classes) && (current_->logits != 1 || classes != 2)) {
    throw Error("the model's last layer gives " + std::to_string(current_->logits) + " numbers, and tells " +
                std::to_string(classes) + "; maps are of models that tell what they give");
  }
  const fields::Standardiser samples = input_standardiser(model_.inputs.front(), input.dtype);
  const auto numbers = static_cast<std::size_t>(model_.inputs.front().sample.elements());
  const std::size_t bytes = numbers * static_cast<std::size_t>(samples.size());
  std::vector<Explanation> explanations;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<const float> of_row = scores.subspan(row * classes, classes);
    const std::span<const std::byte> image(static_cast<const std::byte*>(input.data) + row * bytes, bytes);
    Explanation one;
    one.class_index = options.class_index.value_or(std::distance(of_row.begin(), std::ranges::max_element(of_row)));
    one.score = static_cast<double>(of_row[static_cast<std::size_t>(one.class_index)]);
    one.layer = current_->layer;
    one.height = sample[1];
    one.width = sample[2];
    one.map = class_activation_map(gradients(samples.converted(image), one.class_index, static_cast<int64_t>(classes)),
                                   options.method, one.height, one.width);
    explanations.push_back(std::move(one));
  }
  return explanations;
}

}  // namespace gpunn::inference
