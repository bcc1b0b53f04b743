#include "config/overrides.hpp"

#include <algorithm>
#include <utility>

#include "common/text.hpp"
#include "config/schema.hpp"

namespace gpunn::config {

namespace {

using Kind = YamlNode::Kind;

// The key that a bare word in place of a section stands for.
std::string short_form_of(const std::string& section) {
  if (section == "model" || section == "init_from") return "file";
  const Key* kind = find_key(kind_key_of(section));
  return kind != nullptr ? kind->name() : "";
}

std::vector<std::string> split(const std::string& key) {
  std::vector<std::string> parts(1);
  for (const char c : key) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

void mark_as_override(YamlNode& node, const SourceLocation& where) {
  node.from_override = true;
  node.where = where;
  for (YamlNode& item : node.items) mark_as_override(item, where);
  for (YamlEntry& entry : node.entries) {
    entry.where = where;
    mark_as_override(entry.value, where);
  }
}

// The value under `key` of a map, made where there is none.
YamlNode& child(YamlNode& map, const std::string& key, const SourceLocation& where) {
  const auto found =
      std::find_if(map.entries.begin(), map.entries.end(), [&](const YamlEntry& entry) { return entry.key == key; });
  if (found != map.entries.end()) return found->value;
  YamlNode node;
  node.where = where;
  map.entries.push_back({key, where, std::move(node)});
  return map.entries.back().value;
}

void apply(YamlNode& experiment, const Override& override_, Diagnostics& diagnostics) {
  const SourceLocation where{"--set " + override_.key, 0, 0};
  std::vector<std::string> parts = split(override_.key);
  if (parts.size() > 8 || std::find(parts.begin(), parts.end(), "") != parts.end()) {
    diagnostics.add(where, "expected a key such as optimizer.learning_rate");
    return;
  }
  YamlNode value;
  if (!override_.value.empty()) {
    try {
      value = parse_yaml(override_.value, where.file);
    } catch (const ConfigError& error) {
      for (const Diagnostic& diagnostic : error.diagnostics()) diagnostics.add(where, diagnostic.message);
      return;
    }
  }
  mark_as_override(value, where);
  // `optimizer=adam` changes the type and leaves the rest; another model is another one altogether.
  if (parts.size() == 1 && parts.front() != "model" && value.kind == Kind::scalar &&
      !short_form_of(parts.front()).empty()) {
    parts.push_back(short_form_of(parts.front()));
  }
  YamlNode* at = &experiment;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (at->kind == Kind::null) at->kind = Kind::map;
    if (at->kind != Kind::map) {
      const std::vector<std::string> above(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i));
      diagnostics.add(where, in_quotes(join(above, ".")) + " is a value: nothing is below it");
      return;
    }
    at = &child(*at, parts[i], where);
  }
  *at = std::move(value);
}

}  // namespace

void expand_short_forms(YamlNode& experiment) {
  for (YamlEntry& entry : experiment.entries) {
    const std::string key = short_form_of(entry.key);
    if (entry.value.kind != Kind::scalar || key.empty()) continue;
    YamlNode map;
    map.kind = Kind::map;
    map.where = entry.value.where;
    map.from_override = entry.value.from_override;
    map.entries.push_back({key, entry.value.where, std::move(entry.value)});
    entry.value = std::move(map);
  }
}

void apply_overrides(YamlNode& experiment, const std::vector<Override>& overrides, Diagnostics& diagnostics) {
  for (const Override& override_ : overrides) apply(experiment, override_, diagnostics);
}

}  // namespace gpunn::config
