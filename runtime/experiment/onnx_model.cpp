#include "experiment/onnx_model.hpp"

#include <gpunn/words.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/text.hpp"
#include "config/layer_table.hpp"
#include "config/layers/keys.hpp"
#include "config/model_order.hpp"
#include "config/model_reader.hpp"
#include "interchange/onnx/import.hpp"

namespace gpunn::config {

namespace {

using Kind = YamlNode::Kind;

constexpr const char* kClasses = "classes";

// Layers that give what the one before has as outputs, class by class.
bool keeps_classes(const std::string& type) {
  constexpr std::array<std::string_view, 9> kKeeping = {
      "relu",    "dropout",     "adaptive_avg_pool", "global_avg_pool", "global_max_pool",
      "flatten", "log_softmax", "softmax",           "sigmoid"};
  return std::ranges::find(kKeeping, type) != kKeeping.end();
}

LayerSpec* find_layer(ModelSpec& model, const std::string& name) {
  const auto found = std::ranges::find(model.layers, name, &LayerSpec::name);
  return found == model.layers.end() ? nullptr : &*found;
}

// The layer whose outputs are the model's, or nullptr.
LayerSpec* last_weighted(ModelSpec& model) {
  LayerSpec* layer = model.layers.empty() ? nullptr : &model.layers.back();
  while (layer != nullptr && keeps_classes(layer->type)) layer = find_layer(model, layer->from.front());
  if (layer == nullptr) return nullptr;
  const std::string& type = layer->type;
  const bool is_convolution = type.starts_with("conv") && type.ends_with("d");
  return type == "linear" || is_convolution ? layer : nullptr;
}

void set_classes(ModelSpec& model, const YamlNode& node, Diagnostics& diagnostics) {
  const auto classes = node.kind == Kind::scalar ? integer_of(node.scalar) : std::nullopt;
  if (!classes || *classes < 1 || static_cast<double>(*classes) > kMostChannels) {
    diagnostics.add(
        node.where,
        "model.parameters.classes: expected an integer of at least 1 and at most 65536, found " + describe(node));
    return;
  }
  LayerSpec* layer = last_weighted(model);
  if (layer == nullptr) {
    diagnostics.add(node.where, "model.parameters.classes: the network of " + model.file.string() + " ends in " +
                                    model.layers.back().type + " " + in_quotes(model.layers.back().name) +
                                    ", not in a linear or a convolution, whose outputs would be the classes");
    return;
  }
  const char* const key = layer->type == "linear" ? "units" : "filters";
  for (LayerParameter& parameter : layer->parameters) {
    if (parameter.name == key) parameter.values = {std::to_string(*classes)};
  }
  std::erase_if(layer->parameters, [](const LayerParameter& one) { return one.name == "int8_weight"; });
  model.parameters[kClasses] = std::to_string(*classes);
}

void check_keys(const YamlNode& map, const std::vector<std::string>& known, const std::string& where,
                Diagnostics& diagnostics) {
  for (const YamlEntry& entry : map.entries) {
    if (std::ranges::find(known, entry.key) == known.end()) {
      diagnostics.add(entry.where, "unknown " + where + " " + in_quotes(entry.key) + " of an ONNX model" +
                                       did_you_mean_or_list(entry.key, known));
    }
  }
}

// The sizes that the file leaves open; empty: none are given.
std::vector<int64_t> input_shape_of(const YamlNode& node) {
  const YamlNode* given = node.find("input_shape");
  if (given == nullptr) return {};
  std::string text = given->scalar;
  for (const YamlNode& item : given->items) text += (text.empty() ? "" : ",") + item.scalar;
  return interchange::read_input_shape(text);
}

}  // namespace

bool names_onnx_model(const YamlNode& node) {
  if (node.kind != Kind::map) return false;
  const YamlNode* file = node.find("file");
  return file != nullptr && file->kind == Kind::scalar && interchange::is_onnx(file->scalar);
}

ModelSpec read_onnx_model(const YamlNode& node, Diagnostics& diagnostics) {
  check_keys(node, {"file", "parameters", "input_shape"}, "key", diagnostics);
  const YamlNode& file = *node.find("file");
  const std::filesystem::path path = file.scalar;
  ModelSpec model;
  try {
    std::vector<int64_t> input_shape = input_shape_of(node);
    model = interchange::import_onnx(path, {.input_shape = input_shape}).model;
    model.input_shape = std::move(input_shape);
  } catch (const Error& error) {
    diagnostics.add(file.where, std::string("model: ") + error.what());
    return model;
  }
  const std::size_t before = diagnostics.size();
  if (model.layers.size() > kMostLayers) {
    diagnostics.add(file.where,
                    "model: " + path.string() + " has more than " + std::to_string(kMostLayers) + " layers");
    return model;
  }
  for (const LayerSpec& layer : model.layers) check_layer(layer, diagnostics);
  if (diagnostics.size() != before) return model;
  order_layers(model, diagnostics);
  const YamlNode* parameters = node.find("parameters");
  if (parameters == nullptr || parameters->kind == Kind::null) return model;
  if (parameters->kind != Kind::map) {
    diagnostics.add(parameters->where,
                    "model.parameters: expected a map of names and values, found " + describe(*parameters));
    return model;
  }
  check_keys(*parameters, {kClasses}, "parameter", diagnostics);
  if (const YamlNode* classes = parameters->find(kClasses)) set_classes(model, *classes, diagnostics);
  return model;
}

}  // namespace gpunn::config
