#include "config/parameter_groups.hpp"

#include <gpunn/words.hpp>

#include <cstddef>
#include <utility>

#include "common/text.hpp"
#include "config/key_builders.hpp"

namespace gpunn::config {

namespace {

using Kind = YamlNode::Kind;

class GroupReader {
 public:
  GroupReader(const std::string& path, Diagnostics& diagnostics) : path_(path), diagnostics_(diagnostics) {}

  ParameterGroup read(const YamlNode& node) {
    ParameterGroup group;
    if (node.kind != Kind::map) {
      wrong(node, "expected a group, {match: PATTERN, ...}");
      return group;
    }
    for (const YamlEntry& entry : node.entries) {
      if (entry.key == "match") {
        group.match = patterns(entry.value);
      } else if (entry.key == "learning_rate_factor") {
        group.learning_rate_factor = number(entry.value, above_up_to(0, kLargestRate), "a number");
      } else if (entry.key == "weight_decay") {
        group.weight_decay = weight_decay(entry.value);
      } else {
        diagnostics_.add(entry.where,
                         "unknown key '" + entry.key + "' in a group of " + path_ +
                             advice_or_list(entry.key, {"match", "learning_rate_factor", "weight_decay"}, ""));
      }
    }
    if (node.find("match") == nullptr) {
      diagnostics_.add(node.where, path_ + ": missing key 'match': a pattern of the parameters' names");
    }
    return group;
  }

 private:
  void wrong(const YamlNode& node, const std::string& expected) {
    diagnostics_.add(node.where, path_ + ": " + expected + ", found " + describe(node));
  }

  std::vector<std::string> patterns(const YamlNode& node) {
    std::vector<std::string> result;
    const auto take = [&](const YamlNode& item) {
      if (item.kind != Kind::scalar || item.scalar.empty()) return wrong(item, "expected a pattern, as 'conv1.*'");
      result.push_back(item.scalar);
    };
    if (node.kind == Kind::list && !node.items.empty()) {
      for (const YamlNode& item : node.items) take(item);
    } else {
      take(node);
    }
    return result;
  }

  double number(const YamlNode& node, const Range& range, const std::string& what) {
    const auto value = node.kind == Kind::scalar && !node.quoted ? number_of(node.scalar) : std::nullopt;
    if (value && range.contains(*value)) return *value;
    wrong(node, "expected " + what + " " + (range.text().starts_with("at") ? "of " : "") + range.text());
    return 0;
  }

  std::variant<std::monostate, bool, double> weight_decay(const YamlNode& node) {
    if (node.kind == Kind::scalar && !node.quoted) {
      if (const auto all = boolean_of(node.scalar)) return *all;
    }
    return number(node, between(0, kLargestRate), "true, false or a number");
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<std::vector<ParameterGroup>> read_groups(const std::string& path, const YamlNode& list,
                                                       Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.size();
  std::vector<ParameterGroup> groups;
  GroupReader reader(path, diagnostics);
  for (const YamlNode& item : list.items) groups.push_back(reader.read(item));
  if (diagnostics.size() != before) return std::nullopt;
  return groups;
}

}  // namespace gpunn::config
