#pragma once

#include <gpunn/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn::config {

struct YamlEntry;

// A YAML document as plain values, each with its place in the file.
struct YamlNode {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  SourceLocation where;
  bool quoted = false;         // a scalar in quotes, which is a text whatever it looks like
  bool from_override = false;  // from --set
  std::string scalar;
  std::vector<YamlNode> items;     // of a list
  std::vector<YamlEntry> entries;  // of a map, in the file's order, no key twice

  const YamlNode* find(std::string_view key) const;
};

struct YamlEntry {
  std::string key;
  SourceLocation where;
  YamlNode value;
};

inline constexpr std::size_t kLargestYamlFile = std::size_t{1} << 20;  // bytes
inline constexpr std::size_t kMostYamlNodes = 100'000;                 // after aliases are expanded
inline constexpr std::size_t kDeepestYaml = 64;

// Throws ConfigError, with the place, on bad syntax, duplicate keys, tags, more than one document, or more nodes or
// deeper nesting than the limits above. `file` names the text in errors.
YamlNode parse_yaml(std::string_view text, const std::string& file);

// As a scalar of YAML: quoted unless it can't be taken for anything but a word.
std::string yaml_text(const std::string& text);

// "a list", "nothing", "'abc'": what a message says was found.
std::string describe(const YamlNode& node);

}  // namespace gpunn::config
