#include "config/model_reader.hpp"

#include <gpunn/words.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/files.hpp"
#include "common/text.hpp"
#include "config/blocks.hpp"
#include "config/layer_list.hpp"
#include "config/layer_table.hpp"
#include "config/model_ends.hpp"
#include "config/model_order.hpp"
#include "config/values.hpp"

namespace gpunn::config {

namespace fs = std::filesystem;

namespace {

using Kind = YamlNode::Kind;

void check_keys(const YamlNode& map, const std::vector<std::string>& known, const std::string& where,
                Diagnostics& diagnostics) {
  for (const YamlEntry& entry : map.entries) {
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      diagnostics.add(entry.where,
                      "unknown key " + in_quotes(entry.key) + " in " + where + did_you_mean_or_list(entry.key, known));
    }
  }
}

class ModelReader {
 public:
  explicit ModelReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  ModelSpec read(const YamlNode& node) {
    if (node.kind != Kind::map) {
      diagnostics_.add(node.where, "model: expected the path of a model file, or a model, found " + describe(node));
    } else if (const YamlNode* file = node.find("file")) {
      read_file(node, *file);
    } else if (node.find("layers") != nullptr) {
      model_.file = node.where.file;
      read_inline(node, nullptr);
    } else {
      diagnostics_.add(node.where, "model: expected 'file', the path of a model, or 'layers', the model itself");
    }
    return std::move(model_);
  }

 private:
  void read_file(const YamlNode& node, const YamlNode& file) {
    check_keys(node, {"file", "parameters"}, "model", diagnostics_);
    if (file.kind != Kind::scalar || file.scalar.empty()) {
      diagnostics_.add(file.where, "model: expected the path of a model file, found " + describe(file));
      return;
    }
    if (const std::string_view about = explanation(fs::path(file.scalar).extension().string()); !about.empty()) {
      diagnostics_.add(file.where, "model: expected a model's YAML file, found " + in_quotes(file.scalar) + ". " +
                                       std::string(about));
      return;
    }
    model_.file = file.scalar;
    try {
      model_.text = read_text(model_.file, kLargestYamlFile);
    } catch (const Error& error) {
      diagnostics_.add(file.where, std::string("model: ") + error.what());
      return;
    }
    try {
      const YamlNode root = parse_yaml(model_.text, model_.file.string());
      if (root.kind != Kind::map) fail_at(root.where, "expected a model: a map with 'layers', found " + describe(root));
      read_inline(root, node.find("parameters"));
    } catch (const ConfigError& error) {
      diagnostics_.add(error);
    }
  }

  // `given` are the experiment's parameters for a model in a file of its own.
  void read_inline(const YamlNode& node, const YamlNode* given) {
    check_keys(node, {"name", "parameters", "input", "inputs", "blocks", "layers", "outputs"}, "the model",
               diagnostics_);
    read_parameters(node.find("parameters"));
    if (given != nullptr) take_given(*given);
    model_.name = model_.file.stem().string();
    if (const YamlNode* name = node.find("name")) {
      if (name->kind == Kind::scalar && !name->scalar.empty()) {
        model_.name = name->scalar;
      } else {
        diagnostics_.add(name->where, "name: expected a text, found " + describe(*name));
      }
    }
    model_.inputs = read_inputs(node, model_.parameters, diagnostics_);
    const YamlNode* layers = node.find("layers");
    if (layers == nullptr || layers->kind != Kind::list || layers->items.empty()) {
      diagnostics_.add(
          layers == nullptr ? node.where : layers->where,
          "layers: expected a list of layers, found " + (layers == nullptr            ? "nothing"
                                                         : layers->kind == Kind::list ? "none"
                                                                                      : describe(*layers)));
      return;
    }
    report_unused(node);
    const std::size_t before = diagnostics_.size();
    const YamlNode none;
    const YamlNode* declared = node.find("blocks");
    const Blocks blocks = read_blocks(declared == nullptr ? none : *declared, *layers, diagnostics_);
    if (diagnostics_.size() != before) return;
    read_layers(*layers, blocks, read_outputs(node, model_.parameters, diagnostics_), model_, diagnostics_);
    const bool connected = diagnostics_.size() == before;
    check_layers();
    if (!model_.layers.empty() && connected) order_layers(model_, diagnostics_);
  }

  // The same mistake in each use of a block is said once.
  void check_layers() {
    std::set<std::pair<int, int>> bad;
    for (const LayerSpec& layer : model_.layers) {
      const std::pair<int, int> place = {layer.where.line, layer.where.column};
      if (!layer.origin.empty() && bad.count(place) != 0) continue;
      const std::size_t before = diagnostics_.size();
      check_layer(layer, diagnostics_);
      if (diagnostics_.size() != before) bad.insert(place);
    }
  }

  // Setting a parameter that no layer mentions would change nothing, in silence.
  void report_unused(const YamlNode& model) {
    std::set<std::string> used;
    for (const char* key : {"input", "inputs", "blocks", "layers", "outputs"}) {
      if (const YamlNode* node = model.find(key)) collect_mentions(*node, used);
    }
    for (const auto& [name, where] : overridden_) {
      if (used.count(name) != 0) continue;
      diagnostics_.add(where, "no layer of the model uses its parameter " + in_quotes(name) +
                                  "; in a resolved experiment, parameters are already put in");
    }
  }

  static void collect_mentions(const YamlNode& node, std::set<std::string>& names) {
    collect_parameters(node.scalar, names);
    for (const YamlNode& item : node.items) collect_mentions(item, names);
    for (const YamlEntry& entry : node.entries) collect_mentions(entry.value, names);
  }

  // The text of a parameter, or nothing after a diagnostic.
  const std::string* parameter_text(const YamlEntry& entry) {
    const YamlNode& value = entry.value;
    if (value.kind == Kind::scalar && value.scalar.find('$') == std::string::npos) return &value.scalar;
    diagnostics_.add(value.where,
                     "parameter " + in_quotes(entry.key) + ": expected a number or a word, found " + describe(value));
    return nullptr;
  }

  void read_parameters(const YamlNode* node) {
    if (node == nullptr || node->kind == Kind::null) return;
    if (node->kind != Kind::map) {
      diagnostics_.add(node->where, "parameters: expected a map of names and defaults, found " + describe(*node));
      return;
    }
    if (node->entries.size() > kMostModelParameters) {
      diagnostics_.add(node->where, "parameters: more than " + std::to_string(kMostModelParameters));
      return;
    }
    for (const YamlEntry& entry : node->entries) {
      if (entry.where.line == 0) {  // new from the command line, not declared by the model
        unknown_parameter(entry);
      } else if (const std::string* text = parameter_text(entry)) {
        model_.parameters[entry.key] = *text;
        if (entry.value.from_override) overridden_[entry.key] = entry.value.where;
      }
    }
  }

  void take_given(const YamlNode& given) {
    if (given.kind == Kind::null) return;
    if (given.kind != Kind::map) {
      diagnostics_.add(given.where, "model.parameters: expected a map of names and values, found " + describe(given));
      return;
    }
    for (const YamlEntry& entry : given.entries) {
      const auto declared = model_.parameters.find(entry.key);
      if (declared == model_.parameters.end()) {
        unknown_parameter(entry);
        continue;
      }
      const std::string* text = parameter_text(entry);
      if (text == nullptr) continue;
      if (!same_kind(*text, declared->second)) {
        diagnostics_.add(entry.value.where, "model parameter " + in_quotes(entry.key) + ": expected a value like " +
                                                in_quotes(declared->second) + ", found " + in_quotes(*text));
        continue;
      }
      declared->second = *text;
      overridden_[entry.key] = entry.value.where;
    }
  }

  void unknown_parameter(const YamlEntry& entry) {
    std::vector<std::string> names;
    for (const auto& [name, value] : model_.parameters) names.push_back(name);
    const std::string known = names.empty() ? "; it has no parameters" : did_you_mean_or_list(entry.key, names);
    diagnostics_.add(entry.where, "unknown parameter " + in_quotes(entry.key) + " of the model " +
                                      in_quotes(model_.file.stem().string()) + known);
  }

  Diagnostics& diagnostics_;
  ModelSpec model_;
  std::map<std::string, SourceLocation> overridden_;
};

}  // namespace

ModelSpec read_model(const YamlNode& node, Diagnostics& diagnostics) { return ModelReader(diagnostics).read(node); }

}  // namespace gpunn::config
