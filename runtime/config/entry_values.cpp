#include "config/entry_values.hpp"

#include <algorithm>
#include <cctype>

#include "common/text.hpp"
#include "config/model_reader.hpp"
#include "config/substitution.hpp"
#include "config/values.hpp"

namespace gpunn::config {

namespace {

using Kind = YamlNode::Kind;

constexpr std::size_t kLongestValue = 4096;

bool is_name(const std::string& text, bool dots) {
  char before = '.';
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    if (!plain && !(dots && c == '.' && before != '.')) return false;
    before = c;
  }
  return before != '.' && text.size() <= kLongestName;
}

}  // namespace

std::optional<std::string> EntryValues::text(const YamlNode& node, const std::string& key) const {
  if (node.kind != Kind::scalar || node.scalar.empty()) {
    report_(node.where, key + ": expected a value, found " + describe(node));
    return std::nullopt;
  }
  if (node.scalar.size() > kLongestValue) {
    report_(node.where, key + ": a value of more than " + std::to_string(kLongestValue) + " characters");
    return std::nullopt;
  }
  try {
    return substitute(node.scalar, parameters_);
  } catch (const Error& error) {
    report_(node.where, key + ": " + error.what());
    return std::nullopt;
  }
}

std::optional<int64_t> EntryValues::count(const YamlNode& node, const std::string& key, int64_t least) const {
  const std::optional<std::string> value = text(node, key);
  if (!value) return std::nullopt;
  const std::optional<int64_t> count = integer_of(*value);
  if (count && *count >= least && *count <= static_cast<int64_t>(kMostLayers)) return count;
  report_(node.where, key + ": expected an integer of at least " + std::to_string(least) + " and at most " +
                          std::to_string(kMostLayers) + ", found " + in_quotes(*value));
  return std::nullopt;
}

std::optional<bool> EntryValues::truth(const YamlNode& node, const std::string& key) const {
  const std::optional<std::string> value = text(node, key);
  if (!value) return std::nullopt;
  const std::optional<bool> truth = boolean_of(*value);
  if (!truth) report_(node.where, key + ": expected true or false, found " + in_quotes(*value));
  return truth;
}

std::optional<std::vector<std::string>> EntryValues::texts(const YamlNode& node, const std::string& key,
                                                           std::size_t most) const {
  std::vector<std::string> values;
  if (node.kind != Kind::list) {
    std::optional<std::string> value = text(node, key);
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
    return values;
  }
  if (node.items.empty() || node.items.size() > most) {
    report_(node.where,
            key + ": expected 1 to " + std::to_string(most) + " values, found " + std::to_string(node.items.size()));
    return std::nullopt;
  }
  for (const YamlNode& item : node.items) {
    std::optional<std::string> value = text(item, key);
    if (!value) return std::nullopt;
    values.push_back(std::move(*value));
  }
  return values;
}

std::optional<std::string> EntryValues::name(const YamlNode& node, const std::string& key, bool dots) const {
  std::optional<std::string> value = text(node, key);
  if (!value || (is_name(*value, dots) && *value != "input")) return value;
  report_(node.where, key + ": expected letters, digits, '_' and '-', and not 'input', found " + in_quotes(*value));
  return std::nullopt;
}

}  // namespace gpunn::config
