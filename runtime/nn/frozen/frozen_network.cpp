#include "nn/frozen/frozen_network.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "graph/expressions.hpp"
#include "nn/model.hpp"

namespace gpunn::nn {

using graph::Graph;
using graph::Storage;
using graph::ValueId;

namespace {

constexpr int64_t kChannels = 3;
constexpr std::ptrdiff_t kOfColours = 2;  // constants in front of the network's tensors
constexpr int64_t kAnySide = 512;         // parameters of convolutions are the same for every size

}  // namespace

std::vector<Constant> frozen_tensors(const std::string& network, const ModelSpec& model) {
  std::vector<Constant> constants;
  const Shape image{kChannels, kAnySide, kAnySide};
  for (const std::vector<Parameter>& tensors : {model_parameters(model, image), model_buffers(model, image)}) {
    for (const Parameter& one : tensors) constants.push_back({network + "." + one.name, one.shape, {}});
  }
  return constants;
}

FrozenNetwork frozen_network(std::string name, ModelSpec model, const SeenColours& seen,
                             std::vector<Constant> tensors) {
  const Shape planes{kChannels, 1, 1};
  FrozenNetwork network;
  network.constants = {{name + ".scale", planes, {seen.scale.begin(), seen.scale.end()}},
                       {name + ".shift", planes, {seen.shift.begin(), seen.shift.end()}}};
  std::ranges::move(tensors, std::back_inserter(network.constants));
  network.parameters = std::ssize(model_parameters(model, {kChannels, kAnySide, kAnySide}));
  network.name = std::move(name);
  network.model = std::move(model);
  return network;
}

FrozenLayers::FrozenLayers(Graph& graph, const FrozenNetwork& network) : graph_(graph), network_(network) {
  for (const Constant& constant : network.constants) {
    constants_.push_back(graph.add_value(constant.name, {DType::f32, constant.shape}, Storage::data));
  }
}

std::map<std::string, ValueId> FrozenLayers::look_at(ValueId images, const std::vector<std::string>& wanted) {
  graph::Expressions e(graph_, network_.name);
  const ValueId seen = e.add(e.mul(images, constants_.at(0)), constants_.at(1));
  const std::size_t first = graph_.nodes().size();
  std::map<std::string, ValueId> layers;
  const ModelSpec model = model_up_to(network_.model, wanted);
  // Tensors are in the order of the layers, so a part of the network has the first of them.
  const Shape image{kChannels, kAnySide, kAnySide};
  const auto parameters = constants_.begin() + kOfColours;
  const auto buffers = parameters + network_.parameters;
  build_forward(
      graph_, model, {{.value = seen}}, {parameters, parameters + std::ssize(model_parameters(model, image))},
      {.training = false, .buffers = {buffers, buffers + std::ssize(model_buffers(model, image))}, .layers = &layers});
  if (!network_.precision) return layers;
  std::vector<ValueId> results;
  for (const std::string& layer : wanted) results.push_back(layers.at(layer));
  network_.precision(graph_, first, results);
  for (std::size_t i = 0; i < wanted.size(); ++i) layers.at(wanted[i]) = results[i];
  return layers;
}

int64_t receptive_field(const ModelSpec& model, const std::string& layer) {
  const auto number = [](const LayerSpec& spec, const char* name, int64_t otherwise) {
    for (const LayerParameter& parameter : spec.parameters) {
      if (parameter.name != name) continue;
      int64_t largest = 0;
      for (const std::string& value : parameter.values) {
        largest = std::max<int64_t>(largest, std::strtoll(value.c_str(), nullptr, 10));
      }
      return largest;
    }
    return otherwise;
  };
  int64_t field = 1, pace = 1;
  for (const LayerSpec& spec : model.layers) {
    const bool pools = spec.type == "max_pool" || spec.type == "avg_pool";
    if (pools || spec.type == "conv2d") {
      const int64_t size = number(spec, pools ? "window" : "kernel", 1);
      field += (size - 1) * pace;
      pace *= number(spec, "stride", pools ? size : 1);
    }
    if (spec.name == layer) break;
  }
  return field;
}

ModelSpec model_up_to(ModelSpec model, const std::vector<std::string>& used) {
  std::ptrdiff_t end = 0;
  for (const std::string& name : used) {
    const auto found = std::ranges::find(model.layers, name, &LayerSpec::name);
    if (found == model.layers.end()) {
      std::vector<std::string> names;
      for (const LayerSpec& layer : model.layers) names.push_back(layer.name);
      throw Error("the network " + model.name + " has no layer '" + name + "'" + did_you_mean(name, names),
                  ExitCode::usage);
    }
    end = std::max(end, found - model.layers.begin() + 1);
  }
  model.layers.erase(model.layers.begin() + end, model.layers.end());
  return model;
}

}  // namespace gpunn::nn
