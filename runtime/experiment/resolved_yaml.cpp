// resolved_yaml: the schema walked the other way, from an Experiment to text.
#include <gpunn/experiment.hpp>

#include <algorithm>

#include "common/text.hpp"
#include "config/model_ends.hpp"
#include "experiment/schema.hpp"

namespace gpunn {

namespace {

using config::Key;
using config::Value;
using config::yaml_text;

// A scalar of a model: a number stays bare.
std::string yaml_scalar(const std::string& text) { return config::number_of(text) ? text : yaml_text(text); }

std::string in_brackets(const std::vector<std::string>& items) {
  std::string result = "[";
  result += join(items, ", ");
  return result + "]";
}

std::string scalars(const std::vector<std::string>& values) {
  std::vector<std::string> items;
  for (const std::string& value : values) items.push_back(yaml_scalar(value));
  return in_brackets(items);
}

struct ValueWriter {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return config::number_text(value); }
  std::string operator()(const std::string& value) const { return yaml_text(value); }
  std::string operator()(const std::vector<double>& values) const {
    std::vector<std::string> items;
    for (const double value : values) items.push_back(config::number_text(value));
    return in_brackets(items);
  }
  std::string operator()(const std::vector<std::string>& values) const {
    std::vector<std::string> items;
    for (const std::string& value : values) items.push_back(yaml_text(value));
    return in_brackets(items);
  }
  std::string operator()(const std::vector<ParameterGroup>& groups) const {
    std::vector<std::string> items;
    for (const ParameterGroup& group : groups) items.push_back(in_braces(group));
    return in_brackets(items);
  }

 private:
  std::string in_braces(const ParameterGroup& group) const {
    std::string text = "{match: " + (*this)(group.match);
    text += ", learning_rate_factor: " + config::number_text(group.learning_rate_factor);
    if (const bool* all = std::get_if<bool>(&group.weight_decay)) text += ", weight_decay: " + (*this)(*all);
    if (const double* own = std::get_if<double>(&group.weight_decay)) text += ", weight_decay: " + (*this)(*own);
    return text + "}";
  }
};

std::string layer_text(const LayerSpec& layer) {
  std::vector<std::string> items = {"name: " + yaml_scalar(layer.name)};
  if (!layer.from.empty()) items.push_back("from: " + scalars(layer.from));
  for (const LayerParameter& parameter : layer.parameters) {
    const bool single = parameter.values.size() == 1;
    items.push_back(yaml_text(parameter.name) + ": " +
                    (single ? yaml_scalar(parameter.values.front()) : scalars(parameter.values)));
  }
  std::string result = "    - ";
  result += yaml_text(layer.type);
  result += ": {";
  result += join(items, ", ");
  return result + "}\n";
}

std::string model_text(const ModelSpec& model) {
  std::string result = "model:\n  name: ";
  result += yaml_text(model.name);
  result += '\n';
  if (!model.parameters.empty()) {
    result += "  parameters:\n";
    for (const auto& [name, value] : model.parameters) {
      result += "    ";
      result += yaml_scalar(name);
      result += ": ";
      result += yaml_scalar(value);
      result += '\n';
    }
  }
  const InputSpec& first = model.inputs.front();
  if (model.inputs.size() > 1 || first.name != InputSpec().name || first.dtype) {
    result += "  inputs:\n";
    for (const InputSpec& input : model.inputs) {
      result += "    ";
      result += yaml_scalar(input.name);
      result += ": ";
      result += config::input_text(input);
      result += '\n';
    }
  } else if (!first.shape.empty()) {
    result += "  input: ";
    result += config::input_text(first);
    result += '\n';
  }
  result += "  layers:\n";
  for (const LayerSpec& layer : model.layers) result += layer_text(layer);
  if (!model.outputs.empty()) result += "  outputs:\n";
  for (const OutputSpec& output : model.outputs) {
    result += "    ";
    result += yaml_scalar(output.name);
    result += ": ";
    result += yaml_scalar(output.layer);
    result += '\n';
  }
  return result;
}

}  // namespace

std::vector<Override> data_settings(const std::string& name) {
  constexpr const char* kSection = "data";
  const std::filesystem::path file(name);
  if (file.extension() != ".yaml" && file.extension() != ".yml") return {{kSection, name}};
  const Experiment experiment = load_experiment(file);
  std::vector<Override> settings;
  for (const Key& key : config::schema()) {
    if (key.section() != kSection || !belongs(key, experiment)) continue;
    const std::string text = std::visit(ValueWriter(), key.get(experiment));
    if (!key.optional || (text != "\"\"" && text != "[]")) settings.push_back({key.path, text});
  }
  return settings;
}

std::string resolved_yaml(const Experiment& experiment) {
  std::string result, section;
  for (const Key& key : config::schema()) {
    if (!belongs(key, experiment)) continue;
    if (key.section() == "early_stopping" && !experiment.early_stopping) continue;
    const Value value = key.get(experiment);
    const std::string text = std::visit(ValueWriter(), value);
    if (key.optional && (text == "\"\"" || text == "[]")) continue;
    if (key.section() != section && !key.section().empty()) result += key.section() + ":\n";
    section = key.section();
    if (!section.empty()) result += "  ";
    result += key.name();
    result += ": ";
    result += text;
    result += '\n';
    if (key.path == "name") result += model_text(experiment.model);
  }
  return result;
}

}  // namespace gpunn
