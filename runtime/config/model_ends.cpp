#include "config/model_ends.hpp"

#include <gpunn/words.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "common/text.hpp"
#include "config/substitution.hpp"
#include "config/values.hpp"

namespace gpunn::config {

namespace {

using Kind = YamlNode::Kind;

constexpr int64_t kLargestDimension = 65536;
constexpr std::size_t kMostDimensions = 7, kMostInputs = 64, kMostOutputs = 64;
constexpr const char* kOfData = "data";
// Values that layers take: those of other dtypes are converted before.
constexpr std::array kTypes = {DType::f32, DType::i32, DType::i64, DType::u8};

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const DType type : kTypes) names.emplace_back(name_of(type));
  return names;
}

class EndsReader {
 public:
  EndsReader(const ParameterValues& parameters, Diagnostics& diagnostics)
      : parameters_(parameters), diagnostics_(diagnostics) {}

  std::vector<InputSpec> inputs(const YamlNode& model) {
    const YamlNode *one = model.find("input"), *several = model.find("inputs");
    if (one != nullptr && several != nullptr) {
      diagnostics_.add(several->where, "inputs: the model also has 'input'; leave one of the two out");
      return std::vector<InputSpec>(1);
    }
    if (several != nullptr) return named_inputs(*several);
    InputSpec input;
    if (one != nullptr) {
      input.where = one->where;
      read_shape(*one, "input", input);
    }
    return {input};
  }

  std::vector<PlacedOutput> outputs(const YamlNode& model) {
    const YamlNode* node = model.find("outputs");
    std::vector<PlacedOutput> found;
    if (node == nullptr) return found;
    std::vector<YamlEntry> entries = node->entries;
    for (const YamlNode& item : node->items) entries.push_back({item.scalar, item.where, item});
    if (node->kind == Kind::scalar) entries.push_back({node->scalar, node->where, *node});
    if (entries.empty() || entries.size() > kMostOutputs) {
      diagnostics_.add(node->where, "outputs: expected the names of 1 to " + std::to_string(kMostOutputs) +
                                        " layers, found " + std::to_string(entries.size()));
    }
    std::set<std::string> seen;
    for (const YamlEntry& entry : entries) {
      const std::optional<std::string> layer = values().text(entry.value, "outputs");
      if (!layer) continue;
      const std::string name = node->kind == Kind::map ? entry.key : *layer;
      if (!seen.insert(name).second) {
        diagnostics_.add(entry.where, "outputs: " + in_quotes(name) + " is there twice");
      } else {
        found.push_back({{name, *layer}, entry.value.where});
      }
    }
    return found;
  }

 private:
  EntryValues values() const { return {parameters_, report_}; }

  std::vector<InputSpec> named_inputs(const YamlNode& node) {
    if (node.kind != Kind::map || node.entries.size() > kMostInputs || node.entries.empty()) {
      diagnostics_.add(node.where, "inputs: expected a map of 1 to " + std::to_string(kMostInputs) +
                                       " names, each with a shape or 'data', found " + describe(node));
      return std::vector<InputSpec>(1);
    }
    std::vector<InputSpec> inputs;
    for (const YamlEntry& entry : node.entries) {
      InputSpec input;
      input.where = entry.where;
      input.name = entry.key;
      if (input.name.empty() || input.name.size() > kLongestName) {
        diagnostics_.add(entry.where,
                         "inputs: expected a name of 1 to " + std::to_string(kLongestName) + " characters");
      }
      if (entry.value.kind == Kind::map) {
        read_parts(entry.value, input);
      } else {
        read_shape(entry.value, input.name, input);
      }
      inputs.push_back(std::move(input));
    }
    return inputs;
  }

  void read_parts(const YamlNode& node, InputSpec& input) {
    for (const YamlEntry& part : node.entries) {
      if (part.key == "shape") {
        read_shape(part.value, input.name, input);
      } else if (part.key == "type") {
        read_type(part.value, input);
      } else {
        diagnostics_.add(part.where, "unknown key " + in_quotes(part.key) + " in the input " + in_quotes(input.name) +
                                         did_you_mean_or_list(part.key, {"shape", "type"}));
      }
    }
  }

  void read_type(const YamlNode& node, InputSpec& input) {
    const std::optional<std::string> text = values().text(node, "type");
    if (!text || *text == kOfData) return;
    const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](DType one) { return name_of(one) == *text; });
    if (found != kTypes.end()) {
      input.dtype = *found;
      return;
    }
    diagnostics_.add(node.where, "type: expected " + join(type_names(), ", ") + " or data, found " + in_quotes(*text) +
                                     did_you_mean(*text, type_names()));
  }

  void read_shape(const YamlNode& node, const std::string& name, InputSpec& input) {
    if (node.kind == Kind::scalar && !node.quoted && node.scalar == kOfData) return;
    const auto add = [&](const YamlNode& item) {
      std::string text = item.scalar;
      try {
        text = substitute(item.scalar, parameters_);
      } catch (const Error& error) {
        diagnostics_.add(item.where, error.what());
        return false;
      }
      const auto value = item.kind == Kind::scalar && !item.quoted ? integer_of(text) : std::nullopt;
      if (!value || *value < 1 || *value > kLargestDimension) return false;
      input.shape.push_back(*value);
      return true;
    };
    bool good = node.kind == Kind::list ? !node.items.empty() && node.items.size() <= kMostDimensions : true;
    if (node.kind != Kind::list) good = add(node);
    for (std::size_t i = 0; good && i < node.items.size(); ++i) good = add(node.items[i]);
    if (good) return;
    diagnostics_.add(node.where, name + ": expected [channels, rows, columns] or [features], integers of at least 1 " +
                                     "and at most " + std::to_string(kLargestDimension));
  }

  const ParameterValues& parameters_;
  Diagnostics& diagnostics_;
  const EntryValues::Report report_ = [this](const SourceLocation& where, const std::string& message) {
    diagnostics_.add(where, message);
  };
};

}  // namespace

std::vector<InputSpec> read_inputs(const YamlNode& model, const ParameterValues& parameters, Diagnostics& diagnostics) {
  return EndsReader(parameters, diagnostics).inputs(model);
}

std::vector<PlacedOutput> read_outputs(const YamlNode& model, const ParameterValues& parameters,
                                       Diagnostics& diagnostics) {
  return EndsReader(parameters, diagnostics).outputs(model);
}

std::string input_text(const InputSpec& input) {
  std::vector<std::string> sizes;
  for (const int64_t size : input.shape) sizes.push_back(std::to_string(size));
  std::string shape = input.shape.empty() ? kOfData : "[" + join(sizes, ", ") + "]";
  if (!input.dtype) return shape;
  return "{shape: " + shape + ", type: " + std::string(name_of(*input.dtype)) + "}";
}

}  // namespace gpunn::config
