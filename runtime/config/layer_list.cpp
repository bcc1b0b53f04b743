#include "config/layer_list.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "common/text.hpp"
#include "config/model_reader.hpp"
#include "config/substitution.hpp"
#include "config/values.hpp"

namespace gpunn::config {

namespace {

using Kind = YamlNode::Kind;

constexpr std::size_t kMostInputs = 16;
constexpr std::size_t kMostValues = 8;
constexpr std::size_t kLongestName = 100;

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kLongestName && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  });
}

class LayerListReader {
 public:
  LayerListReader(const std::map<std::string, std::string>& parameters, Diagnostics& diagnostics)
      : parameters_(parameters), diagnostics_(diagnostics) {}

  std::vector<LayerSpec> read(const YamlNode& list) {
    read_list(list, "");
    name_the_nameless();
    return std::move(layers_);
  }

 private:
  // A block of layers: the top, or one round of a repeat.
  struct Scope {
    std::set<std::string> names;  // as given in it
    std::string suffix;
  };

  void read_list(const YamlNode& list, const std::string& suffix) {
    scopes_.push_back({given_names(list), suffix});
    for (const YamlNode& item : list.items) {
      if (diagnostics_.full() || exhausted_) break;
      if (item.kind == Kind::map && item.find("repeat") != nullptr) {
        read_repeat(item);
      } else {
        read_layer(item);
      }
    }
    scopes_.pop_back();
  }

  std::set<std::string> given_names(const YamlNode& list) {
    std::set<std::string> names;
    for (const YamlNode& item : list.items) {
      if (item.kind != Kind::map || item.entries.size() != 1) continue;
      const YamlNode* name = item.entries.front().value.find("name");
      if (name == nullptr || name->kind != Kind::scalar) continue;
      try {
        names.insert(substitute(name->scalar, parameters_));
      } catch (const Error&) {
        continue;  // read_layer reports it
      }
    }
    return names;
  }

  bool take_from_budget(const SourceLocation& where) {
    if (++spent_ <= kMostLayers) return true;
    exhausted_ = true;
    diagnostics_.add(where, "the model has more than " + std::to_string(kMostLayers) + " layers, repeats unrolled");
    return false;
  }

  void read_repeat(const YamlNode& item) {
    for (const YamlEntry& entry : item.entries) {
      if (entry.key != "repeat" && entry.key != "layers") {
        diagnostics_.add(entry.where,
                         "unknown key " + in_quotes(entry.key) + " in repeat" + suggestion(entry.key, {"layers"}));
      }
    }
    const YamlNode& count_node = *item.find("repeat");
    const std::optional<std::string> text = scalar_text(count_node, "repeat");
    if (!text) return;
    const std::optional<int64_t> count = integer_of(*text);
    if (!count || *count < 0 || *count > static_cast<int64_t>(kMostLayers)) {
      diagnostics_.add(count_node.where, "repeat: expected an integer of at least 0 and at most " +
                                             std::to_string(kMostLayers) + ", found " + in_quotes(*text));
      return;
    }
    const YamlNode* layers = item.find("layers");
    if (layers == nullptr || layers->kind != Kind::list) {
      diagnostics_.add(item.where, "repeat: expected a list of layers beside it, under 'layers'");
      return;
    }
    const std::string outer = scopes_.back().suffix;
    for (int64_t round = 1; round <= *count && !exhausted_ && !diagnostics_.full(); ++round) {
      if (layers->items.empty() && !take_from_budget(item.where)) return;
      read_list(*layers, outer + "_" + std::to_string(round));
    }
  }

  void read_layer(const YamlNode& item) {
    if (!take_from_budget(item.where)) return;
    LayerSpec layer;
    layer.where = item.where;
    if (item.kind == Kind::scalar && !item.scalar.empty()) {
      layer.type = item.scalar;
    } else if (item.kind == Kind::map && item.entries.size() == 1) {
      layer.type = item.entries.front().key;
      read_parameters(item.entries.front().value, layer);
    } else {
      report_shape(item);
      return;
    }
    layers_.push_back(std::move(layer));
  }

  void report_shape(const YamlNode& item) {
    std::string message = "expected a layer: its type, or 'type: {parameters}', found " + describe(item);
    if (item.kind == Kind::map && item.entries.size() > 1) {
      std::vector<std::string> keys;
      for (const YamlEntry& entry : item.entries) keys.push_back(entry.key);
      message =
          "expected one layer, found the keys " + join(keys, ", ") + "; indent a layer's parameters below its type";
    }
    diagnostics_.add(item.where, message);
  }

  void read_parameters(const YamlNode& node, LayerSpec& layer) {
    if (node.kind == Kind::null) return;
    if (node.kind != Kind::map) {
      diagnostics_.add(node.where, layer.type + ": expected a map of parameters, found " + describe(node));
      return;
    }
    for (const YamlEntry& entry : node.entries) {
      if (entry.key == "name") {
        read_name(entry.value, layer);
      } else if (entry.key == "from") {
        read_from(entry.value, layer);
      } else {
        LayerParameter parameter{entry.key, {}, entry.where};
        if (!read_values(entry.value, entry.key, kMostValues, parameter.values)) parameter.values.clear();
        layer.parameters.push_back(std::move(parameter));
      }
    }
  }

  void read_name(const YamlNode& node, LayerSpec& layer) {
    const std::optional<std::string> name = scalar_text(node, "name");
    if (!name) return;
    if (!is_name(*name) || *name == "input") {
      diagnostics_.add(node.where,
                       "name: expected letters, digits, '_' and '-', and not 'input', found " + in_quotes(*name));
      return;
    }
    layer.name = *name + scopes_.back().suffix;
    const auto [other, fresh] = lines_.emplace(layer.name, node.where.line);
    if (!fresh) {
      diagnostics_.add(node.where, "two layers are called " + in_quotes(layer.name) + "; the other is in line " +
                                       std::to_string(other->second));
    }
  }

  void read_from(const YamlNode& node, LayerSpec& layer) {
    if (!read_values(node, "from", kMostInputs, layer.from)) return;
    for (std::string& name : layer.from) {
      // The innermost block that has the name.
      const auto scope = std::find_if(scopes_.rbegin(), scopes_.rend(),
                                      [&](const Scope& candidate) { return candidate.names.count(name) != 0; });
      if (scope != scopes_.rend()) name += scope->suffix;
    }
  }

  bool read_values(const YamlNode& node, const std::string& key, std::size_t most, std::vector<std::string>& values) {
    if (node.kind != Kind::list) {
      if (std::optional<std::string> text = scalar_text(node, key)) values.push_back(std::move(*text));
      return !values.empty();
    }
    if (node.items.empty() || node.items.size() > most) {
      diagnostics_.add(node.where, key + ": expected 1 to " + std::to_string(most) + " values, found " +
                                       std::to_string(node.items.size()));
      return false;
    }
    for (const YamlNode& item : node.items) {
      std::optional<std::string> text = scalar_text(item, key);
      if (!text) return false;
      values.push_back(std::move(*text));
    }
    return true;
  }

  std::optional<std::string> scalar_text(const YamlNode& node, const std::string& key) {
    if (node.kind != Kind::scalar || node.scalar.empty()) {
      diagnostics_.add(node.where, key + ": expected a value, found " + describe(node));
      return std::nullopt;
    }
    try {
      return substitute(node.scalar, parameters_);
    } catch (const Error& error) {
      diagnostics_.add(node.where, key + ": " + error.what());
      return std::nullopt;
    }
  }

  void name_the_nameless() {
    std::map<std::string, int> ordinals;
    for (LayerSpec& layer : layers_) {
      const int ordinal = ++ordinals[layer.type];
      if (!layer.name.empty()) continue;
      layer.name = layer.type + std::to_string(ordinal);
      while (!lines_.emplace(layer.name, layer.where.line).second) layer.name += "_";
    }
  }

  const std::map<std::string, std::string>& parameters_;
  Diagnostics& diagnostics_;
  std::vector<LayerSpec> layers_;
  std::vector<Scope> scopes_;
  std::map<std::string, int> lines_;  // of the names
  std::size_t spent_ = 0;
  bool exhausted_ = false;
};

}  // namespace

std::vector<LayerSpec> read_layers(const YamlNode& list, const std::map<std::string, std::string>& parameters,
                                   Diagnostics& diagnostics) {
  return LayerListReader(parameters, diagnostics).read(list);
}

}  // namespace gpunn::config
