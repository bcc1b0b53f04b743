#pragma once

#include <gpunn/experiment.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/values.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::config {

enum class ValueType { boolean, integer, number, text, choice, path, numbers, texts, paths, groups };

using Value = std::variant<bool, int64_t, double, std::string, std::vector<double>, std::vector<std::string>,
                           std::vector<ParameterGroup>>;

// A key of an experiment, all that is known of it. Reading, defaults, suggestions, `--set`, resolved_yaml and the table
// in docs/experiments.md come from here: a new setting is a member of Experiment and a row of schema.cpp,
// schedule_keys.cpp or augmentation_keys.cpp.
struct Key {
  std::string path;  // "optimizer.learning_rate"
  ValueType type = ValueType::text;
  std::string help;
  Range range;                       // of a number, or of each of a list
  std::vector<std::string> choices;  // of a choice
  std::size_t count = 0;             // of a list's items; 0: any
  std::vector<std::string> kinds;    // the kinds of its section that have it; empty: all
  std::string formerly;              // its name in older versions, for whoever still writes it
  bool required = false;
  bool optional = false;  // may be absent altogether: empty, or null in YAML
  std::function<void(Experiment&, const Value&)> set;
  std::function<Value(const Experiment&)> get;

  std::string section() const;  // "optimizer"; empty at the top
  std::string name() const;     // "learning_rate"
};

// In the order of the documentation. `model` is not among them: see model_reader.hpp.
const std::vector<Key>& schema();
const Key* find_key(std::string_view path);
std::vector<std::string> sections();                         // "data", "optimizer", ...
std::vector<std::string> keys_of(std::string_view section);  // names, sections and `model` among those at the top
// The key of a section that says of what kind it is: "optimizer.type", "data.dataset"; a section may not have it.
std::string kind_key_of(std::string_view section);
// The kind chosen in a section that has one ("sgd" for optimizer); empty for others.
std::string kind_of(const Experiment& experiment, std::string_view section);
bool belongs(const Key& key, const Experiment& experiment);

// A node as a key's value. Adds a diagnostic and returns nothing where it is of another type or out of range.
std::optional<Value> read_value(const Key& key, const YamlNode& node, Diagnostics& diagnostics);

// "an integer of at least 1", for messages and the documentation.
std::string expectation(const Key& key);

}  // namespace gpunn::config
