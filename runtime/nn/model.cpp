#include "nn/model.hpp"

#include <gpunn/error.hpp>
#include <gpunn/random.h>
#include <gpunn/words.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "common/normal_pair.hpp"
#include "common/text.hpp"
#include "config/diagnostics.hpp"
#include "config/layer_table.hpp"
#include "config/model_order.hpp"
#include "nn/layers.hpp"

namespace gpunn::nn {

namespace {

using graph::Graph;
using graph::ValueId;

constexpr uint64_t kParameterStreams = uint64_t{1} << 33;  // stream of the parameter with index 0

// Hands the layer with the given index the value of its next parameter or buffer.
using TensorSource = std::function<ValueId(std::size_t layer, Parameter tensor)>;
struct Sources {
  TensorSource parameter, buffer;
};

// Whether a sample is as an input of the model wants it.
void check_input(const ModelSpec& model, const InputSpec& input, const TensorType& sample) {
  const SourceLocation where = input.where.line > 0 ? input.where : SourceLocation{model.file.string(), 0, 0};
  if (sample.shape.empty() && is_floating(sample.dtype)) {
    config::fail_at(where, "the data has samples without dimensions");
  }
  const bool is_shape = input.shape.empty() || input.shape == sample.shape;
  if (is_shape && input.dtype.value_or(sample.dtype) == sample.dtype) return;
  const bool is_only = model.inputs.size() == 1;
  const std::string which = is_only ? "the model " + model.name : "the input " + in_quotes(input.name);
  if (!is_shape) {
    config::fail_at(
        where, which + " takes samples of " + to_string(Shape(input.shape)) + ", these are " + to_string(sample.shape));
  }
  config::fail_at(where, which + " takes samples of " + std::string(name_of(*input.dtype)) + ", these are " +
                             std::string(name_of(sample.dtype)));
}

// The outputs that a layer takes, and the layers they are of.
struct LayerInputs {
  std::vector<ValueId> values;
  std::vector<std::string> producers;  // for messages
};

ValueId build_layer(Graph& graph, const LayerSpec& layer, const LayerInputs& inputs, std::size_t index,
                    const ForwardOptions& options, const Sources& sources) {
  const config::LayerType* type = config::find_layer_type(layer.type);
  try {
    const LayerFunction function = layer_function(layer.type);
    const config::LayerArguments arguments(*type, layer);
    const auto of_layer = [&](const TensorSource& source) {
      return [&](Parameter wanted) {
        require_sane_size(wanted.shape);
        wanted.name = layer.name + "." + wanted.name;
        wanted.layer = layer.name;
        return source(index, std::move(wanted));
      };
    };
    const std::function<ValueId(Parameter)> parameter = of_layer(sources.parameter);
    const std::function<ValueId(Parameter)> buffer = of_layer(sources.buffer);
    const ValueId output =
        function({graph, layer, arguments, inputs.values, options, index, parameter, buffer, inputs.producers});
    const Shape& shape = graph.value(output).type.shape;
    require_sane_size(Shape(shape.begin() + 1, shape.end()));
    return output;
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    config::fail_at(layer.where, layer.type + " '" + layer.name + "': " + error.what() + layer.origin);
  }
}

std::vector<std::string> names_of(const std::vector<InputValue>& inputs) {
  std::vector<std::string> names;
  for (const InputValue& input : inputs) names.push_back(input.name);
  return names;
}

// The name of a layer or an input and its place, for messages.
std::string source_text(const ModelSpec& model, int source) {
  if (source >= 0) {
    const LayerSpec& layer = model.layers[static_cast<std::size_t>(source)];
    return "'" + layer.name + "' in line " + std::to_string(layer.where.line);
  }
  if (model.inputs.size() == 1) return "the model's input";
  return "the model's input " + in_quotes(model.inputs[config::input_number(source)].name);
}

std::vector<ValueId> build(Graph& graph, const ModelSpec& model, const std::vector<InputValue>& given,
                           const ForwardOptions& options, const Sources& sources) {
  config::Diagnostics diagnostics;
  for (const LayerSpec& layer : model.layers) config::check_layer(layer, diagnostics);
  const config::LayerOrder order = config::order_layers(model, diagnostics);
  diagnostics.throw_if_any();
  std::vector<ValueId> samples;
  for (const std::size_t number : matched_inputs(model, names_of(given))) {
    const ValueId x = given[number].value;
    const TensorType& type = graph.value(x).type;
    const Shape sample(type.shape.begin() + (type.shape.empty() ? 0 : 1), type.shape.end());
    check_input(model, model.inputs[samples.size()], {type.dtype, sample});
    require_sane_size(sample);
    samples.push_back(x);
  }

  std::vector<ValueId> values(model.layers.size(), graph::kNoValue);
  for (const std::size_t i : order.order) {
    LayerInputs inputs;
    for (const int input : order.inputs[i]) {
      inputs.values.push_back(input < 0 ? samples[config::input_number(input)]
                                        : values[static_cast<std::size_t>(input)]);
      inputs.producers.push_back(source_text(model, input));
    }
    values[i] = build_layer(graph, model.layers[i], inputs, i, options, sources);
  }
  if (options.layers != nullptr) {
    for (std::size_t i = 0; i < values.size(); ++i) options.layers->emplace(model.layers[i].name, values[i]);
  }
  std::vector<ValueId> outputs;
  for (const std::size_t output : order.outputs) outputs.push_back(values[output]);
  return outputs;
}

using ByLayer = std::vector<std::vector<Parameter>>;

// The tensors of each layer, found by building the model for a batch of one that is never run.
struct LayerTensors {
  ByLayer parameters, buffers;
};

LayerTensors tensors_by_layer(const ModelSpec& model, const SampleTypes& samples) {
  Graph scratch;
  const std::vector<InputValue> inputs = add_inputs(scratch, samples, 1);
  LayerTensors found{ByLayer(model.layers.size()), ByLayer(model.layers.size())};
  const auto record = [&scratch](ByLayer& to, graph::Storage storage) {
    return [&scratch, &to, storage](std::size_t layer, Parameter tensor) {
      const ValueId value = scratch.add_value(tensor.name, {DType::f32, tensor.shape}, storage);
      to[layer].push_back(std::move(tensor));
      return value;
    };
  };
  build(scratch, model, inputs, {.training = false},
        {record(found.parameters, graph::Storage::parameters), record(found.buffers, graph::Storage::state)});
  return found;
}

std::vector<float> normal_values(const Parameter& parameter, uint64_t seed, uint64_t index) {
  std::vector<float> values(static_cast<std::size_t>(element_count(parameter.shape)), 0.0F);
  gpunn_random_words words{};
  std::array<double, 2> normal{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 4 == 0) words = gpunn_philox(seed, kParameterStreams + index, i / 4);
    if (i % 2 == 0) normal = normal_pair(words.word[i % 4], words.word[i % 4 + 1]);
    values[i] = static_cast<float>(normal[i % 2] * parameter.deviation);
  }
  return values;
}

std::vector<Parameter> flattened(ByLayer by_layer) {
  std::vector<Parameter> result;
  for (auto& layer : by_layer) {
    for (Parameter& tensor : layer) result.push_back(std::move(tensor));
  }
  return result;
}

// Hands out `values`, which are in the order of the layers in the file; layers are built as data flows. `what` is what
// they are, for messages.
TensorSource given(const Graph& graph, const ModelSpec& model, const ByLayer& by_layer,
                   const std::vector<ValueId>& values, const std::string& what) {
  std::vector<std::size_t> next(by_layer.size(), 0);
  std::size_t total = 0;
  for (std::size_t i = 0; i < by_layer.size(); ++i) {
    next[i] = total;
    total += by_layer[i].size();
  }
  if (values.size() != total) {
    throw Error("the model " + model.name + " has " + std::to_string(total) + " " + what + "s, " +
                std::to_string(values.size()) + " were given");
  }
  return [&graph, &values, what, next](std::size_t layer, const Parameter& tensor) mutable {
    const ValueId value = values[next[layer]++];
    const TensorType& type = graph.value(value).type;
    if (type != TensorType{DType::f32, tensor.shape}) {
      throw Error("the " + what + " " + tensor.name + " must be f32" + to_string(tensor.shape) + ", is " +
                  to_string(type));
    }
    return value;
  };
}

}  // namespace

std::vector<InputValue> add_inputs(Graph& graph, const SampleTypes& samples, int64_t rows) {
  std::vector<InputValue> inputs;
  for (const auto& [name, type] : samples) {
    inputs.push_back({name, graph.add_value("x", {type.dtype, batch_shape(type.shape, rows)}, graph::Storage::data)});
  }
  return inputs;
}

std::vector<std::string> names_of(const SampleTypes& samples) {
  std::vector<std::string> names;
  for (const SampleType& sample : samples) names.push_back(sample.name);
  return names;
}

std::vector<std::size_t> matched_inputs(const ModelSpec& model, const std::vector<std::string>& names) {
  if (model.inputs.size() == 1 && names.size() == 1) return {0};
  std::vector<std::size_t> numbers;
  for (const InputSpec& input : model.inputs) {
    const auto found = std::ranges::find(names, input.name);
    if (found == names.end()) {
      config::fail_at(input.where.line > 0 ? input.where : SourceLocation{model.file.string(), 0, 0},
                      "the model " + model.name + " takes the input " + in_quotes(input.name) + ", and the data has " +
                          (names.empty() ? "none" : join(names, ", ")) + did_you_mean(input.name, names));
    }
    numbers.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return numbers;
}

std::vector<Parameter> model_parameters(const ModelSpec& model, const SampleTypes& samples) {
  return flattened(tensors_by_layer(model, samples).parameters);
}

std::vector<Parameter> model_buffers(const ModelSpec& model, const SampleTypes& samples) {
  return flattened(tensors_by_layer(model, samples).buffers);
}

std::vector<ValueId> build_forward(Graph& graph, const ModelSpec& model, const std::vector<InputValue>& inputs,
                                   const std::vector<ValueId>& parameters, const ForwardOptions& options) {
  SampleTypes samples;
  for (const auto& [name, value] : inputs) {
    const TensorType& type = graph.value(value).type;
    samples.push_back({name, {type.dtype, Shape(type.shape.begin() + (type.shape.empty() ? 0 : 1), type.shape.end())}});
  }
  const LayerTensors tensors = tensors_by_layer(model, samples);
  return build(graph, model, inputs, options,
               {given(graph, model, tensors.parameters, parameters, "parameter"),
                given(graph, model, tensors.buffers, options.buffers, "buffer")});
}

Shape output_shape(const ModelSpec& model, const SampleTypes& samples) {
  Graph g;
  const auto values = [&](const std::vector<Parameter>& tensors, graph::Storage storage) {
    std::vector<ValueId> ids;
    for (const Parameter& t : tensors) ids.push_back(g.add_value(t.name, {DType::f32, t.shape}, storage));
    return ids;
  };
  const std::vector<ValueId> parameters = values(model_parameters(model, samples), graph::Storage::parameters);
  const ForwardOptions options{.training = false,
                               .buffers = values(model_buffers(model, samples), graph::Storage::state)};
  return g.value(build_forward(g, model, add_inputs(g, samples, 1), parameters, options).front()).type.shape;
}

namespace {

// [to, from]: each of `to` values as the mean of its neighbours among `from` ones, by the distance of their centres.
std::vector<float> interpolation_weights(int64_t to, int64_t from) {
  std::vector<float> weights(static_cast<std::size_t>(to * from), 0.0F);
  const double step = static_cast<double>(from) / static_cast<double>(to), last = static_cast<double>(from - 1);
  for (int64_t i = 0; i < to; ++i) {
    const double place = std::clamp((static_cast<double>(i) + 0.5) * step - 0.5, 0.0, last);
    const auto left = static_cast<int64_t>(std::floor(place));
    const double share = place - static_cast<double>(left);
    const auto at = static_cast<std::size_t>(i * from + left);
    weights[at] = static_cast<float>(1 - share);
    if (share > 0) weights[at + 1] = static_cast<float>(share);
  }
  return weights;
}

}  // namespace

std::vector<float> initial_values(const Parameter& parameter, uint64_t seed, uint64_t index) {
  std::vector<float> values(static_cast<std::size_t>(element_count(parameter.shape)), 0.0F);
  if (parameter.init == InitKind::zeros) return values;
  if (parameter.init == InitKind::ones || parameter.init == InitKind::constant) {
    std::ranges::fill(values, parameter.init == InitKind::ones ? 1.0F : static_cast<float>(parameter.deviation));
    return values;
  }
  if (parameter.init == InitKind::normal) return normal_values(parameter, seed, index);
  if (parameter.init == InitKind::interpolation) {
    return interpolation_weights(parameter.shape[0], parameter.shape[1]);
  }
  // In double and rounded once, so that no compiler's choice of instructions shows: 2u - 1 is exact.
  const double bound = parameter.init == InitKind::uniform ? std::sqrt(3.0) * parameter.deviation
                                                           : 1.0 / std::sqrt(static_cast<double>(parameter.fan_in));
  gpunn_random_words words{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 4 == 0) words = gpunn_philox(seed, kParameterStreams + index, i / 4);
    const double unit = 2.0 * static_cast<double>(gpunn_random_unit(words.word[i % 4])) - 1.0;
    values[i] = static_cast<float>(unit * bound);
  }
  return values;
}

}  // namespace gpunn::nn
