#include "experiment/overrides.hpp"

#include <algorithm>
#include <utility>

#include "common/text.hpp"
#include "experiment/schema.hpp"

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

bool is_among(const std::vector<std::string>& kinds, const std::string& kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// The type that a section has in the tree, its default where it gives none; not checked.
std::string kind_in(const YamlNode& experiment, const std::string& section) {
  const YamlNode* node = experiment.find(section);
  const YamlNode* kind = node == nullptr ? nullptr : node->find(find_key(kind_key_of(section))->name());
  return kind != nullptr && kind->kind == Kind::scalar ? kind->scalar : kind_of(Experiment(), section);
}

// Takes the file's keys that only `before` has out of a section that a --set made to be of type `after`.
std::vector<std::string> drop_keys(YamlNode& section, const std::string& name, const std::string& before,
                                   const std::string& after) {
  std::vector<std::string> dropped;
  std::erase_if(section.entries, [&](const YamlEntry& entry) {
    const Key* key = find_key(name + "." + entry.key);
    const bool foreign = key != nullptr && is_among(key->kinds, before) && !is_among(key->kinds, after);
    if (!foreign || entry.value.from_override) return false;
    dropped.push_back(entry.key);
    return true;
  });
  return dropped;
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

std::vector<std::string> apply_overrides(YamlNode& experiment, const std::vector<Override>& overrides,
                                         Diagnostics& diagnostics) {
  std::vector<std::pair<std::string, std::string>> kinds;  // sections with a type, and the file's types
  for (const std::string& section : sections()) {
    if (find_key(kind_key_of(section)) != nullptr) kinds.emplace_back(section, kind_in(experiment, section));
  }
  for (const Override& override_ : overrides) apply(experiment, override_, diagnostics);
  std::vector<std::string> notes;
  for (const auto& [name, before] : kinds) {
    const Key& kind = *find_key(kind_key_of(name));
    const std::string after = kind_in(experiment, name);
    if (after == before || !is_among(kind.choices, after)) continue;
    const std::vector<std::string> dropped = drop_keys(child(experiment, name, {}), name, before, after);
    if (dropped.empty()) continue;
    notes.push_back("note: --set " + kind.path + "=" + after + " (was " + before + ") drops " + join(dropped, ", ") +
                    ": " + after + " has no such keys");
  }
  return notes;
}

}  // namespace gpunn::config
