// Values in a list of layers: scalars after the parameters are inserted.
#pragma once

#include <gpunn/error.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/yaml_tree.hpp"

namespace gpunn::config {

using ParameterValues = std::map<std::string, std::string>;

// Reads values at one place of a model. Each function reports a mistake through `report` and then returns an empty
// value.
class EntryValues {
 public:
  using Report = std::function<void(const SourceLocation&, const std::string&)>;
  EntryValues(const ParameterValues& parameters, const Report& report) : parameters_(parameters), report_(report) {}

  std::optional<std::string> text(const YamlNode& node, const std::string& key) const;
  std::optional<int64_t> count(const YamlNode& node, const std::string& key, int64_t least) const;
  std::optional<bool> truth(const YamlNode& node, const std::string& key) const;
  // One value or a list of them.
  std::optional<std::vector<std::string>> texts(const YamlNode& node, const std::string& key, std::size_t most) const;
  // Letters, digits, '_' and '-', in parts between dots; `dots`: whether there may be more than one part.
  std::optional<std::string> name(const YamlNode& node, const std::string& key, bool dots) const;

 private:
  const ParameterValues& parameters_;
  const Report& report_;
};

inline constexpr std::size_t kLongestName = 200;  // of a layer, with the names of the blocks that it is in

}  // namespace gpunn::config
