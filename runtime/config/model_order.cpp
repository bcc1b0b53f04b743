#include "config/model_order.hpp"

#include <gpunn/words.hpp>

#include <algorithm>
#include <map>
#include <string>

#include "common/text.hpp"
#include "common/topological_order.hpp"
#include "config/layer_table.hpp"

namespace gpunn::config {

namespace {

std::vector<std::vector<int>> resolve_inputs(const ModelSpec& model, Diagnostics& diagnostics) {
  std::map<std::string, int> index;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    index.emplace(model.inputs[i].name, input_source(i));
    names.push_back(model.inputs[i].name);
  }
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    index.emplace(model.layers[i].name, static_cast<int>(i));
    names.push_back(model.layers[i].name);
  }
  std::vector<std::vector<int>> inputs(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size() && !diagnostics.full(); ++i) {
    const LayerSpec& layer = model.layers[i];
    const LayerType* type = find_layer_type(layer.type);
    const bool takes_inputs = type == nullptr || type->inputs > 0;
    if (layer.from.empty() && takes_inputs) inputs[i].push_back(i == 0 ? input_source(0) : static_cast<int>(i) - 1);
    for (const std::string& from : layer.from) {
      const auto found = index.find(from);
      if (found == index.end()) {
        diagnostics.add(layer.where, layer.type + " '" + layer.name + "' comes from '" + from +
                                         "', which no layer is called" + did_you_mean_or_list(from, names) +
                                         layer.origin);
      } else {
        inputs[i].push_back(found->second);
      }
    }
  }
  return inputs;
}

// The model's inputs are there from the start.
std::vector<std::size_t> sort(const std::vector<std::vector<int>>& inputs) {
  std::vector<std::vector<std::size_t>> layers(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const int input : inputs[i]) {
      if (input >= 0) layers[i].push_back(static_cast<std::size_t>(input));
    }
  }
  return topological_order(layers);
}

// Walks from an unsorted layer to one of its unsorted inputs until a layer comes up again.
void report_cycle(const ModelSpec& model, const LayerOrder& found, Diagnostics& diagnostics) {
  std::vector<bool> sorted(model.layers.size(), false);
  for (const std::size_t i : found.order) sorted[i] = true;
  std::size_t at = 0;
  while (sorted[at]) ++at;
  std::vector<std::size_t> path;
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    const auto& inputs = found.inputs[at];
    at = static_cast<std::size_t>(*std::find_if(inputs.begin(), inputs.end(), [&](int input) {
      return input >= 0 && !sorted[static_cast<std::size_t>(input)];
    }));
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  path.push_back(at);
  std::reverse(path.begin(), path.end());  // data flows from input to user
  std::vector<std::string> names;
  for (const std::size_t i : path) names.push_back(model.layers[i].name);
  diagnostics.add(model.layers[at].where, "the layers form a cycle: " + join(names, " -> ") + model.layers[at].origin);
}

std::vector<std::size_t> output_layers(const ModelSpec& model, Diagnostics& diagnostics) {
  if (model.outputs.empty()) return {model.layers.size() - 1};
  std::vector<std::size_t> layers;
  for (const OutputSpec& output : model.outputs) {
    const auto found = std::find_if(model.layers.begin(), model.layers.end(),
                                    [&](const LayerSpec& layer) { return layer.name == output.layer; });
    if (found == model.layers.end()) {
      diagnostics.add({model.file.string(), 0, 0}, "the model has no layer " + in_quotes(output.layer) +
                                                       " for its output " + in_quotes(output.name));
    } else {
      layers.push_back(static_cast<std::size_t>(found - model.layers.begin()));
    }
  }
  return layers;
}

void report_unused(const ModelSpec& model, const LayerOrder& found, Diagnostics& diagnostics) {
  std::vector<bool> used(model.layers.size(), false), used_inputs(model.inputs.size(), false);
  std::vector<std::size_t> open = found.outputs;
  for (const std::size_t output : open) used[output] = true;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    for (const int input : found.inputs[at]) {
      if (input < 0) {
        used_inputs[input_number(input)] = true;
      } else if (!used[static_cast<std::size_t>(input)]) {
        used[static_cast<std::size_t>(input)] = true;
        open.push_back(static_cast<std::size_t>(input));
      }
    }
  }
  const std::string why = found.outputs.size() == 1
                              ? "the output " + in_quotes(model.output_layer().name) + " does not depend on it"
                              : "no output depends on it";
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    const LayerSpec& layer = model.layers[i];
    diagnostics.add(layer.where, layer.type + " '" + layer.name + "' leads nowhere: " + why + layer.origin);
  }
  for (std::size_t i = 0; i < used_inputs.size(); ++i) {
    if (used_inputs[i] || used_inputs.size() == 1) continue;  // a model may be a constant
    diagnostics.add(model.inputs[i].where, "the input " + in_quotes(model.inputs[i].name) + " leads nowhere: " + why);
  }
}

}  // namespace

LayerOrder order_layers(const ModelSpec& model, Diagnostics& diagnostics) {
  LayerOrder result;
  if (model.layers.empty()) {
    diagnostics.add({model.file.string(), 0, 0}, "the model has no layers");
    return result;
  }
  const std::size_t before = diagnostics.size();
  result.inputs = resolve_inputs(model, diagnostics);
  if (diagnostics.size() != before) return result;
  result.outputs = output_layers(model, diagnostics);
  if (diagnostics.size() != before) return result;
  result.order = sort(result.inputs);
  if (result.order.size() != model.layers.size()) {
    report_cycle(model, result, diagnostics);
  } else {
    report_unused(model, result, diagnostics);
  }
  return result;
}

}  // namespace gpunn::config
