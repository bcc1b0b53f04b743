#include "config/layer_list.hpp"

#include <gpunn/words.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include "common/text.hpp"
#include "config/block_arguments.hpp"
#include "config/entry_values.hpp"
#include "config/layer_scopes.hpp"
#include "config/layer_table.hpp"
#include "config/model_reader.hpp"

namespace gpunn::config {

namespace {

using Kind = YamlNode::Kind;
using Scope = LayerScopes::Scope;
using Source = LayerScopes::Source;

constexpr std::size_t kMostInputs = 16;
constexpr std::size_t kMostValues = 8;
// What may be read in all, every use of a block and every round of a repeat counted anew.
constexpr std::size_t kMostEntries = 10 * kMostLayers;
constexpr std::size_t kMostSettings = 20 * kMostLayers;

std::string text_of(const SourceLocation& where) {
  return where.file + ":" + std::to_string(where.line) + ":" + std::to_string(where.column);
}

class LayerListReader {
 public:
  LayerListReader(ModelSpec& model, const Blocks& blocks, Diagnostics& diagnostics)
      : parameters_(&model.parameters),
        model_(model),
        blocks_(blocks),
        diagnostics_(diagnostics),
        scopes_(model.inputs) {
    for (const InputSpec& input : model.inputs) lines_.emplace(input.name, input.where.line);
  }

  void read(const YamlNode& list, const std::vector<PlacedOutput>& outputs) {
    const std::size_t before = diagnostics_.size();
    read_list(list, LayerScopes::kModel);
    name_the_nameless();
    if (diagnostics_.size() == before) connect();
    if (diagnostics_.size() == before) outputs.empty() ? end_in_layer(list) : take_outputs(outputs);
    model_.layers = std::move(layers_);
  }

 private:
  bool stopped() const { return exhausted_ || diagnostics_.full(); }

  // A mistake in a block is one, however often the block is used.
  void report(const SourceLocation& where, const std::string& message) {
    if (!origin_.empty() && !reported_.emplace(where.line, where.column).second) return;
    diagnostics_.add(where, message + origin_);
  }

  EntryValues values() const { return {*parameters_, report_}; }

  bool exhaust(const SourceLocation& where, std::size_t most, const std::string& what) {
    if (!exhausted_) diagnostics_.add(where, "the model has more than " + std::to_string(most) + " " + what);
    exhausted_ = true;
    return false;
  }
  bool take_entry(const SourceLocation& where) {
    return ++entries_ <= kMostEntries || exhaust(where, kMostEntries, "entries, repeats unrolled");
  }

  void read_list(const YamlNode& list, Scope scope) {
    for (const YamlNode& item : list.items) {
      if (stopped() || !take_entry(item.where)) return;
      read_entry(item, scope);
    }
  }

  void read_entry(const YamlNode& item, Scope scope) {
    const auto has = [&](const char* key) { return item.kind == Kind::map && item.find(key) != nullptr; };
    if (has("repeat")) {
      read_repeat(item, scope);
    } else if (has("branch")) {
      read_branch(item, scope);
    } else if (has("choose")) {
      read_choice(item, scope);
    } else if (has("when")) {
      check_keys(item, "when", {"layers"});
      const YamlNode* layers = layers_of(item, "when");
      if (layers != nullptr && truth(item)) read_list(*layers, scope);
    } else if (const std::optional<BlockUse> use = block_use(item, blocks_)) {
      read_use(*use, scope);
    } else {
      read_layer(item, scope);
    }
  }

  void check_keys(const YamlNode& item, const std::string& kind, const std::vector<std::string>& others) {
    for (const YamlEntry& entry : item.entries) {
      if (entry.key == kind || std::find(others.begin(), others.end(), entry.key) != others.end()) continue;
      report(entry.where,
             "unknown key " + in_quotes(entry.key) + " in " + kind + did_you_mean_or_list(entry.key, others));
    }
  }

  // Null after a report.
  const YamlNode* layers_of(const YamlNode& item, const std::string& kind) {
    const YamlNode* layers = item.find("layers");
    if (layers != nullptr && layers->kind == Kind::list) return layers;
    report(item.where, kind + ": expected a list of layers beside it, under 'layers'");
    return nullptr;
  }

  bool truth(const YamlNode& map) {
    const YamlNode* when = map.find("when");
    return when == nullptr || values().truth(*when, "when").value_or(false);
  }

  // Where `from` says, else what comes before.
  Source input_of(const YamlNode& map, Scope scope, const std::string& user) {
    const YamlNode* from = map.find("from");
    if (from == nullptr) return previous_;
    const auto names = values().texts(*from, "from", 1);
    return names ? scopes_.named(scope, names->front(), from->where, {user, origin_}) : previous_;
  }

  void read_repeat(const YamlNode& item, Scope scope) {
    check_keys(item, "repeat", {"layers"});
    const std::optional<int64_t> count = values().count(*item.find("repeat"), "repeat", 0);
    if (!count) return;
    const YamlNode* layers = layers_of(item, "repeat");
    if (layers == nullptr) return;
    for (int64_t round = 1; round <= *count && !stopped() && take_entry(item.where); ++round) {
      read_list(*layers, scopes_.open_round(scope, "_" + std::to_string(round)));
    }
  }

  void read_choice(const YamlNode& item, Scope scope) {
    const YamlNode& node = *item.find("choose");
    const std::optional<std::string> choice = values().text(node, "choose");
    if (!choice) return;
    std::vector<std::string> names;
    const YamlNode* chosen = nullptr;
    for (const YamlEntry& entry : item.entries) {
      if (&entry.value == &node) continue;
      names.push_back(entry.key);
      if (entry.value.kind != Kind::list && entry.value.kind != Kind::null) {
        report(entry.value.where,
               "choose: expected a list of layers for " + in_quotes(entry.key) + ", found " + describe(entry.value));
      } else if (entry.key == *choice) {
        chosen = &entry.value;
      }
    }
    if (std::find(names.begin(), names.end(), *choice) == names.end()) {
      report(node.where, "choose: there is no " + in_quotes(*choice) + " here" + did_you_mean_or_list(*choice, names));
    } else if (chosen != nullptr) {
      read_list(*chosen, scope);
    }
  }

  // A name of a layer, block or branch, new in the model; its full name.
  std::optional<std::string> take_name(const std::string& name, Scope scope, const SourceLocation& where) {
    std::string full = scopes_.full_name(scope, name);
    if (full.size() > kLongestName) {
      report(where, "name: more than " + std::to_string(kLongestName) + " characters with the names of its blocks");
      return std::nullopt;
    }
    const auto [other, fresh] = lines_.emplace(full, where.line);
    if (fresh) return full;
    const bool is_input = std::any_of(model_.inputs.begin(), model_.inputs.end(),
                                      [&](const InputSpec& input) { return input.name == full; });
    report(where, is_input ? "an input of the model is called " + in_quotes(full) + "; give the layer another name"
                           : "two layers are called " + in_quotes(full) + "; the other is in line " +
                                 std::to_string(other->second));
    return std::nullopt;
  }

  void read_branch(const YamlNode& item, Scope scope) {
    check_keys(item, "branch", {"from", "when", "layers"});
    const YamlNode& node = *item.find("branch");
    const std::optional<std::string> name = values().name(node, "branch", false);
    const std::optional<std::string> full = name ? take_name(*name, scope, node.where) : std::nullopt;
    if (!full) return;
    previous_ = input_of(item, scope, "the branch " + in_quotes(*full));
    const Scope inside = scopes_.open_branch(scope, *full + ".");
    const YamlNode* layers = layers_of(item, "branch");
    if (layers != nullptr && truth(item)) read_list(*layers, inside);
    scopes_.declare(scope, *name, previous_, inside);
  }

  void read_use(const BlockUse& use, Scope scope) {
    const Block& block = *use.block;
    const BlockArguments arguments(use, values(), report_);
    if (!arguments.sound()) return;
    std::string name = arguments.name();
    while (name.empty()) {
      name = block.name + std::to_string(++ordinals_[scopes_.prefix(scope) + block.name]);
      if (lines_.count(scopes_.full_name(scope, name)) != 0) name.clear();
    }
    const std::optional<std::string> full = take_name(name, scope, use.where);
    if (!full) return;
    if (use.arguments != nullptr) previous_ = input_of(*use.arguments, scope, block.name + " " + in_quotes(*full));
    std::optional<Scope> inside;
    if (arguments.used()) {
      const bool numbered = arguments.count().has_value();
      if (numbered) inside = scopes_.open_block(*full + ".", block.name, previous_);
      for (int64_t i = 0; i < arguments.count().value_or(1) && !stopped() && take_entry(use.where); ++i) {
        const std::string prefix = numbered ? *full + "." + std::to_string(i) + "." : *full + ".";
        const Scope instance = scopes_.open_block(prefix, block.name, previous_);
        if (!read_instance(use, arguments, i, instance)) return;
        if (numbered) scopes_.declare(*inside, std::to_string(i), previous_, instance);
        if (!numbered) inside = instance;
      }
    }
    scopes_.declare(scope, name, previous_, inside);
  }

  bool read_instance(const BlockUse& use, const BlockArguments& arguments, int64_t index, Scope scope) {
    const std::optional<ParameterValues> inner = arguments.values_of(index, model_.parameters);
    if (!inner) return false;
    const ParameterValues* const outer = std::exchange(parameters_, &*inner);
    std::string origin = "; in the block " + in_quotes(use.block->name) + ", used at " + text_of(use.where) + origin_;
    origin_.swap(origin);
    read_list(*use.block->layers, scope);
    origin_.swap(origin);
    parameters_ = outer;
    return true;
  }

  void read_layer(const YamlNode& item, Scope scope) {
    if (layers_.size() >= kMostLayers) {
      exhaust(item.where, kMostLayers, "layers, repeats unrolled");
      return;
    }
    LayerSpec layer;
    layer.where = item.where;
    layer.origin = origin_;
    std::vector<Source> inputs;
    if (item.kind == Kind::scalar && !item.scalar.empty()) {
      layer.type = item.scalar;
    } else if (item.kind == Kind::map && item.entries.size() == 1) {
      layer.type = item.entries.front().key;
    } else {
      report_shape(item);
      return;
    }
    if (!blocks_.empty() && find_layer_type(layer.type) == nullptr) {
      std::vector<std::string> names = layer_type_names();
      for (const auto& [name, block] : blocks_) names.push_back(name);
      report(item.where,
             "unknown layer or block " + in_quotes(layer.type) + advice_or_list(layer.type, names, kLayersCommand));
      return;
    }
    if (item.kind == Kind::map) read_parameters(item.entries.front().value, scope, layer, inputs);
    chained_.push_back(inputs.empty());
    if (inputs.empty()) inputs.push_back(previous_);
    inputs_.push_back(std::move(inputs));
    previous_ = scopes_.layer(layers_.size());
    outputs_.push_back(previous_);
    places_.push_back(scope);
    if (!layer.name.empty()) scopes_.declare(scope, local_name_, previous_);
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
    report(item.where, message);
  }

  void read_parameters(const YamlNode& node, Scope scope, LayerSpec& layer, std::vector<Source>& inputs) {
    if (node.kind == Kind::null) return;
    if (node.kind != Kind::map) {
      report(node.where, layer.type + ": expected a map of parameters, found " + describe(node));
      return;
    }
    settings_ += node.entries.size();
    if (settings_ > kMostSettings && !exhaust(node.where, kMostSettings, "settings, repeats unrolled")) return;
    const YamlNode* from = nullptr;
    for (const YamlEntry& entry : node.entries) {
      if (entry.key == "name") {
        const std::optional<std::string> name = values().name(entry.value, "name", true);
        const std::optional<std::string> full = name ? take_name(*name, scope, entry.value.where) : std::nullopt;
        if (!full) continue;
        layer.name = *full;
        local_name_ = *name;
      } else if (entry.key == "from") {
        from = &entry.value;
      } else {
        layer.parameters.push_back(
            {entry.key, values().texts(entry.value, entry.key, kMostValues).value_or(std::vector<std::string>{}),
             entry.where});
      }
    }
    if (from == nullptr) return;
    const std::string user = layer.name.empty() ? layer.type : layer.type + " " + in_quotes(layer.name);
    if (auto names = values().texts(*from, "from", kMostInputs)) {
      for (const std::string& name : *names) {
        inputs.push_back(scopes_.named(scope, name, from->where, {origin_.empty() ? "" : user, origin_}));
      }
      layer.from = std::move(*names);
    }
  }

  void name_the_nameless() {
    std::map<std::string, int> ordinals;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      LayerSpec& layer = layers_[i];
      const Scope scope = scopes_.without_rounds(places_[i]);
      const int ordinal = ++ordinals[scopes_.prefix(scope) + layer.type];
      if (!layer.name.empty()) continue;
      std::string name = layer.type + std::to_string(ordinal);
      while (!lines_.emplace(scopes_.prefix(scope) + name, layer.where.line).second) name += "_";
      layer.name = scopes_.prefix(scope) + name;
      scopes_.declare(scope, name, outputs_[i]);
    }
  }

  // Gives each layer the full names of those that it comes from; none where that is the layer before.
  void connect() {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      LayerSpec& layer = layers_[i];
      for (std::size_t k = 0; k < inputs_[i].size(); ++k) {
        const std::optional<int> source = scopes_.resolve(inputs_[i][k], diagnostics_);
        if (!source || (chained_[i] && *source == static_cast<int>(i) - 1)) continue;
        std::string name = name_of(*source);
        if (chained_[i]) {
          layer.from.push_back(std::move(name));
        } else {
          layer.from[k] = std::move(name);
        }
      }
    }
  }

  const std::string& name_of(int source) const {
    return source < 0 ? model_.inputs[input_number(source)].name : layers_[static_cast<std::size_t>(source)].name;
  }

  void end_in_layer(const YamlNode& list) {
    const std::optional<int> output = scopes_.resolve(previous_, diagnostics_);
    if (!output || layers_.empty() || *output == static_cast<int>(layers_.size()) - 1) return;
    diagnostics_.add(list.items.back().where, "the model ends in a branch or block that is left out; end with a layer");
  }

  void take_outputs(const std::vector<PlacedOutput>& outputs) {
    for (const auto& [output, where] : outputs) {
      const Source named = scopes_.named(LayerScopes::kModel, output.layer, where, {"an output of the model", ""});
      const std::optional<int> source = scopes_.resolve(named, diagnostics_);
      if (source && *source < 0) {
        diagnostics_.add(where, "outputs: " + in_quotes(output.layer) + " is an input; an output is a layer");
      } else if (source) {
        model_.outputs.push_back({output.name, name_of(*source)});
      }
    }
  }

  const ParameterValues* parameters_;
  ModelSpec& model_;
  const Blocks& blocks_;
  Diagnostics& diagnostics_;
  const EntryValues::Report report_ = [this](const SourceLocation& where, const std::string& message) {
    report(where, message);
  };
  LayerScopes scopes_;
  Source previous_ = LayerScopes::kInput;  // what an entry without `from` takes
  std::vector<LayerSpec> layers_;
  // By layer: what it takes, whether for want of a `from`, what it gives, and where it stands.
  std::vector<std::vector<Source>> inputs_;
  std::vector<bool> chained_;
  std::vector<Source> outputs_;
  std::vector<Scope> places_;
  std::string local_name_;            // of the layer being read
  std::string origin_;                // the uses of blocks that it is in, as an end of a message
  std::map<std::string, int> lines_;  // of the names
  std::map<std::string, int> ordinals_;
  std::set<std::pair<int, int>> reported_;
  std::size_t entries_ = 0, settings_ = 0;
  bool exhausted_ = false;
};

}  // namespace

void read_layers(const YamlNode& list, const Blocks& blocks, const std::vector<PlacedOutput>& outputs, ModelSpec& model,
                 Diagnostics& diagnostics) {
  LayerListReader(model, blocks, diagnostics).read(list, outputs);
}

}  // namespace gpunn::config
