#include "experiment/documentation.hpp"

#include <gpunn/experiment.hpp>
#include <gpunn/vocabulary.hpp>

#include <algorithm>
#include <utility>

#include "common/text.hpp"
#include "config/layer_table.hpp"
#include "experiment/schema.hpp"

namespace gpunn::config {

namespace {

struct DefaultText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const std::vector<double>& values) const {
    std::vector<std::string> items;
    for (const double value : values) items.push_back(number_text(value));
    std::string result = "[";
    result += join(items, ", ");
    return result + "]";
  }
  std::string operator()(const std::vector<std::string>& /*values*/) const { return ""; }
  std::string operator()(const std::vector<ParameterGroup>& /*groups*/) const { return ""; }
};

std::string code(const std::string& text) { return text.empty() ? text : "`" + text + "`"; }

std::string type_text(const Key& key) {
  if (key.type != ValueType::choice) return expectation(key);
  std::vector<std::string> choices;
  for (const std::string& choice : key.choices) choices.push_back(code(choice));
  return join(choices, ", ");
}

std::string default_of(const Key& key) {
  if (key.required) return "required";
  if (key.path == "name") return "none";
  Experiment defaults;
  defaults.early_stopping.emplace();
  const std::string text = std::visit(DefaultText(), key.get(defaults));
  return key.optional && (text.empty() || text == "[]") ? "none" : code(text);
}

std::string type_text(const LayerKey& key) {
  switch (key.kind) {
    case LayerValue::integer:
      return "integer, " + key.range.text();
    case LayerValue::number:
      return "number, " + key.range.text();
    case LayerValue::boolean:
      return "true or false";
    case LayerValue::choice: {
      std::vector<std::string> choices;
      for (const std::string& choice : key.choices) choices.push_back(code(choice));
      return join(choices, ", ");
    }
    case LayerValue::sizes:
    case LayerValue::padding:
    case LayerValue::margins: {
      std::vector<std::string> ways = {"integer"};
      for (const std::string& form : forms(key)) ways.push_back(form == "same" ? code(form) : form);
      const std::string last = ways.back();
      ways.pop_back();
      return (ways.empty() ? last : join(ways, ", ") + " or " + last) + ", " + key.range.text();
    }
    case LayerValue::list:
      return "list of integers, " + key.range.text();
    case LayerValue::op:
      return "name of an op";
  }
  return {};
}

// A bar within a cell would end it, in code too.
std::string row(const std::vector<std::string>& cells) {
  std::string result = "|";
  for (const std::string& cell : cells) {
    result += ' ';
    for (const char c : cell) result += c == '|' ? "\\|" : std::string(1, c);
    result += " |";
  }
  return result + "\n";
}

KeyInfo info_of(const Key& key) {
  KeyInfo info{key.path, type_text(key), default_of(key), key.help, key.choices};
  if (!key.kinds.empty()) info.help += " Only for " + join(key.kinds, ", ") + ".";
  if (key.type == ValueType::boolean) info.choices = {"true", "false"};
  return info;
}

KeyInfo info_of(const LayerKey& key, const LayerType& type) {
  const bool other_key = type.find(key.fallback) != nullptr;
  const std::string fallback = other_key ? "as " + code(key.fallback) : code(key.fallback);
  return {key.name, type_text(key), fallback.empty() ? "required" : fallback, key.help, key.choices};
}

}  // namespace

std::string keys_table() {
  std::string result = row({"Key", "Value", "Default", "Meaning"}) + "| --- | --- | --- | --- |\n";
  for (const KeyInfo& key : experiment_keys()) result += row({code(key.path), key.value, key.fallback, key.help});
  return result;
}

std::string layers_table() {
  std::string result = row({"Layer", "Parameter", "Value", "Default", "Meaning"}) + "| --- | --- | --- | --- | --- |\n";
  for (const LayerInfo& layer : layer_types()) {
    result += row({code(layer.name), "", "", "", layer.help});
    for (const KeyInfo& key : layer.keys) result += row({"", code(key.path), key.value, key.fallback, key.help});
  }
  return result;
}

}  // namespace gpunn::config

namespace gpunn {

std::vector<KeyInfo> experiment_keys() {
  std::vector<KeyInfo> keys;
  for (const config::Key& key : config::schema()) keys.push_back(config::info_of(key));
  return keys;
}

std::vector<LayerInfo> layer_types() {
  std::vector<LayerInfo> layers;
  for (const config::LayerType& type : config::layer_table()) {
    LayerInfo layer{type.name, type.help, {}, type.inputs, std::max(type.inputs, type.most_inputs)};
    for (const config::LayerKey& key : type.keys) layer.keys.push_back(config::info_of(key, type));
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace gpunn
