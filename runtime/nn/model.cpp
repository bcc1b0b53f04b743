#include "nn/model.hpp"

#include <gpunn/error.hpp>
#include <gpunn/random.h>

#include <cmath>
#include <functional>
#include <utility>

#include "config/diagnostics.hpp"
#include "config/layer_table.hpp"
#include "config/model_order.hpp"
#include "nn/layers.hpp"

namespace gpunn::nn {

namespace {

using graph::Graph;
using graph::ValueId;

constexpr uint64_t kParameterStreams = uint64_t{1} << 33;  // stream of the parameter with index 0

// Hands the layer with the given index the value of its next parameter.
using ParameterSource = std::function<ValueId(std::size_t layer, Parameter parameter)>;

void check_input(const ModelSpec& model, const Shape& sample) {
  if (sample.empty()) config::fail_at({model.file.string(), 0, 0}, "the data has samples without dimensions");
  if (model.input.empty() || model.input == sample) return;
  config::fail_at({model.file.string(), 0, 0}, "the model " + model.name + " takes samples of " +
                                                   to_string(Shape(model.input)) + ", the data set has " +
                                                   to_string(sample));
}

ValueId build_layer(Graph& graph, const LayerSpec& layer, const std::vector<ValueId>& inputs, std::size_t index,
                    const ForwardOptions& options, const ParameterSource& source) {
  const config::LayerType* type = config::find_layer_type(layer.type);
  try {
    const LayerFunction function = layer_function(layer.type);
    const config::LayerArguments arguments(*type, layer);
    const std::function<ValueId(Parameter)> parameter = [&](Parameter wanted) {
      require_sane_size(wanted.shape);
      wanted.name = layer.name + "." + wanted.name;
      return source(index, std::move(wanted));
    };
    const ValueId output = function({graph, layer, arguments, inputs, options, index, parameter});
    const Shape& shape = graph.value(output).type.shape;
    require_sane_size(Shape(shape.begin() + 1, shape.end()));
    return output;
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    config::fail_at(layer.where, layer.type + " '" + layer.name + "': " + error.what());
  }
}

ValueId build(Graph& graph, const ModelSpec& model, ValueId x, const ForwardOptions& options,
              const ParameterSource& source) {
  config::Diagnostics diagnostics;
  for (const LayerSpec& layer : model.layers) config::check_layer(layer, diagnostics);
  const config::LayerOrder order = config::order_layers(model, diagnostics);
  diagnostics.throw_if_any();
  const Shape& shape = graph.value(x).type.shape;
  const Shape sample(shape.begin() + (shape.empty() ? 0 : 1), shape.end());
  check_input(model, sample);
  require_sane_size(sample);

  std::vector<ValueId> outputs(model.layers.size(), graph::kNoValue);
  for (const std::size_t i : order.order) {
    std::vector<ValueId> inputs;
    for (const int input : order.inputs[i]) {
      inputs.push_back(input == config::kModelInput ? x : outputs[static_cast<std::size_t>(input)]);
    }
    outputs[i] = build_layer(graph, model.layers[i], inputs, i, options, source);
  }
  return outputs.back();
}

// The parameters of each layer, found by building the model for a batch of one that nobody runs.
std::vector<std::vector<Parameter>> parameters_by_layer(const ModelSpec& model, const Shape& sample_shape) {
  Graph scratch;
  Shape batch = sample_shape;
  batch.insert(batch.begin(), 1);
  const ValueId x = scratch.add_value("x", {DType::f32, batch}, graph::Storage::arena);
  std::vector<std::vector<Parameter>> found(model.layers.size());
  const ParameterSource record = [&](std::size_t layer, Parameter parameter) {
    const ValueId value = scratch.add_value(parameter.name, {DType::f32, parameter.shape}, graph::Storage::parameters);
    found[layer].push_back(std::move(parameter));
    return value;
  };
  build(scratch, model, x, {.training = false}, record);
  return found;
}

}  // namespace

std::vector<Parameter> model_parameters(const ModelSpec& model, const Shape& sample_shape) {
  std::vector<Parameter> result;
  for (auto& layer : parameters_by_layer(model, sample_shape)) {
    for (Parameter& parameter : layer) result.push_back(std::move(parameter));
  }
  return result;
}

ValueId build_forward(Graph& graph, const ModelSpec& model, ValueId x, const std::vector<ValueId>& parameters,
                      const ForwardOptions& options) {
  const Shape shape = graph.value(x).type.shape;
  const auto by_layer = parameters_by_layer(model, Shape(shape.begin() + (shape.empty() ? 0 : 1), shape.end()));
  // Layers are built as data flows, parameters are in the order of the layers in the file.
  std::vector<std::size_t> next(by_layer.size(), 0);
  std::size_t total = 0;
  for (std::size_t i = 0; i < by_layer.size(); ++i) {
    next[i] = total;
    total += by_layer[i].size();
  }
  if (parameters.size() != total) {
    throw Error("the model " + model.name + " has " + std::to_string(total) + " parameters, " +
                std::to_string(parameters.size()) + " were given");
  }
  const ParameterSource given = [&](std::size_t layer, const Parameter& parameter) {
    const ValueId value = parameters[next[layer]++];
    const TensorType& type = graph.value(value).type;
    if (type != TensorType{DType::f32, parameter.shape}) {
      throw Error("the parameter " + parameter.name + " must be f32" + to_string(parameter.shape) + ", is " +
                  to_string(type));
    }
    return value;
  };
  return build(graph, model, x, options, given);
}

std::vector<float> initial_values(const Parameter& parameter, uint64_t seed, uint64_t index) {
  std::vector<float> values(static_cast<std::size_t>(element_count(parameter.shape)), 0.0F);
  if (parameter.init == InitKind::zeros) return values;
  // In double and rounded once, so that no compiler's choice of instructions shows: 2u - 1 is exact.
  const double bound = 1.0 / std::sqrt(static_cast<double>(parameter.fan_in));
  gpunn_random_words words{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 4 == 0) words = gpunn_philox(seed, kParameterStreams + index, i / 4);
    const double unit = 2.0 * static_cast<double>(gpunn_random_unit(words.word[i % 4])) - 1.0;
    values[i] = static_cast<float>(unit * bound);
  }
  return values;
}

}  // namespace gpunn::nn
