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
  std::map<std::string, int> index = {{"input", kModelInput}};
  std::vector<std::string> names = {"input"};
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    index.emplace(model.layers[i].name, static_cast<int>(i));
    names.push_back(model.layers[i].name);
  }
  std::vector<std::vector<int>> inputs(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size() && !diagnostics.full(); ++i) {
    const LayerSpec& layer = model.layers[i];
    const LayerType* type = find_layer_type(layer.type);
    const bool takes_inputs = type == nullptr || type->inputs > 0;
    if (layer.from.empty() && takes_inputs) inputs[i].push_back(static_cast<int>(i) - 1);
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

// The model's input is there from the start.
std::vector<std::size_t> sort(const std::vector<std::vector<int>>& inputs) {
  std::vector<std::vector<std::size_t>> layers(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const int input : inputs[i]) {
      if (input != kModelInput) layers[i].push_back(static_cast<std::size_t>(input));
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
      return input != kModelInput && !sorted[static_cast<std::size_t>(input)];
    }));
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), at));
  path.push_back(at);
  std::reverse(path.begin(), path.end());  // data flows from input to user
  std::vector<std::string> names;
  for (const std::size_t i : path) names.push_back(model.layers[i].name);
  diagnostics.add(model.layers[at].where, "the layers form a cycle: " + join(names, " -> ") + model.layers[at].origin);
}

void report_unused(const ModelSpec& model, const LayerOrder& found, Diagnostics& diagnostics) {
  std::vector<bool> used(model.layers.size(), false);
  std::vector<std::size_t> open = {model.layers.size() - 1};
  used.back() = true;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    for (const int input : found.inputs[at]) {
      if (input == kModelInput || used[static_cast<std::size_t>(input)]) continue;
      used[static_cast<std::size_t>(input)] = true;
      open.push_back(static_cast<std::size_t>(input));
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    const LayerSpec& layer = model.layers[i];
    diagnostics.add(layer.where, layer.type + " '" + layer.name + "' leads nowhere: the output '" +
                                     model.layers.back().name + "' does not depend on it" + layer.origin);
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
  result.order = sort(result.inputs);
  if (result.order.size() != model.layers.size()) {
    report_cycle(model, result, diagnostics);
  } else {
    report_unused(model, result, diagnostics);
  }
  return result;
}

}  // namespace gpunn::config
