// A key of an experiment. Each room declares the keys of its own; experiment/ gathers them.
#pragma once

#include <gpunn/parameter_group.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/values.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::config {

enum class ValueType { boolean, integer, number, text, choice, path, numbers, texts, paths, groups };

using Value = std::variant<bool, int64_t, double, std::string, std::vector<double>, std::vector<std::string>,
                           std::vector<ParameterGroup>>;

// The properties of a key that reading, suggestions, `--set` and the documentation need.
struct KeyDescription {
  std::string path;  // "optimizer.learning_rate"; where a room declares it, without its section
  ValueType type = ValueType::text;
  std::string help;
  Range range;                       // of a number, or of each of a list
  std::vector<std::string> choices;  // of a choice
  std::size_t count = 0;             // of a list's items; 0: any
  std::vector<std::string> kinds;    // the kinds of its section that have it; empty: all
  std::string formerly;              // its name in older versions, which is still accepted
  bool required = false;
  bool optional = false;  // may be absent altogether: empty, or null in YAML

  std::string section() const;  // "optimizer"; empty at the top
  std::string name() const;     // "learning_rate"
};

// A key and the member of Owner that it is.
template <class Owner>
struct KeyOf : KeyDescription {
  std::function<void(Owner&, const Value&)> set;
  std::function<Value(const Owner&)> get;
};

// Reads a node as a key's value. If it has another type or is out of range, adds a diagnostic and returns an empty
// value.
std::optional<Value> read_value(const KeyDescription& key, const YamlNode& node, Diagnostics& diagnostics);

// "an integer of at least 1", for messages and the documentation.
std::string expectation(const KeyDescription& key);

}  // namespace gpunn::config
