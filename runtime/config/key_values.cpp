// A YAML node as the value of a key.
#include <gpunn/words.hpp>

#include <algorithm>
#include <utility>

#include "common/text.hpp"
#include "config/key.hpp"
#include "config/parameter_groups.hpp"

namespace gpunn::config {

namespace {

using Kind = YamlNode::Kind;

std::string with_range(const std::string& what, const Range& range) {
  const std::string text = range.text();
  return text.empty() ? what : what + (text.starts_with("at") ? " of " : " ") + text;
}

class Reader {
 public:
  Reader(const KeyDescription& key, const YamlNode& node, Diagnostics& diagnostics)
      : key_(key), node_(node), diagnostics_(diagnostics) {}

  std::optional<Value> read() const {
    if (node_.kind == Kind::null && key_.optional) return empty();
    switch (key_.type) {
      case ValueType::boolean:
        return boolean();
      case ValueType::integer:
        return integer();
      case ValueType::number:
        if (const auto value = number(node_)) return Value(*value);
        return std::nullopt;
      case ValueType::text:
      case ValueType::path:
        if (auto value = text(node_)) return Value(std::move(*value));
        return std::nullopt;
      case ValueType::choice:
        return choice();
      case ValueType::numbers:
        return list<double>([this](const YamlNode& item) { return number(item); });
      case ValueType::texts:
      case ValueType::paths:
        return list<std::string>([this](const YamlNode& item) { return text(item); });
      case ValueType::groups:
        if (node_.kind != Kind::list) return wrong(node_);
        if (auto groups = read_groups(key_.path, node_, diagnostics_)) return Value(std::move(*groups));
        return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  std::nullopt_t wrong(const YamlNode& node, const std::string& hint = {}) const {
    diagnostics_.add(node.where, key_.path + ": expected " + expectation(key_) + ", found " + describe(node) +
                                     (hint.empty() ? explained(node) : hint));
    return std::nullopt;
  }

  // `device: cuda` is about the same as the key, `device: [0, 1]` about several of what it takes one of.
  std::string explained(const YamlNode& node) const {
    const bool several = node.kind == Kind::list || node.scalar.find(',') != std::string::npos;
    const std::string_view about_key = explanation(key_.name() + (several ? "s" : ""));
    if (about_key.empty() || (!several && explanation(node.scalar) != about_key)) return {};
    return ". " + std::string(about_key);
  }

  Value empty() const {
    if (key_.type == ValueType::numbers) return std::vector<double>();
    if (key_.type == ValueType::paths || key_.type == ValueType::texts) return std::vector<std::string>();
    if (key_.type == ValueType::groups) return std::vector<ParameterGroup>();
    return std::string();
  }

  bool bare(const YamlNode& node) const { return node.kind == Kind::scalar && !node.quoted; }

  std::optional<Value> boolean() const {
    if (bare(node_)) {
      if (const auto value = boolean_of(node_.scalar)) return Value(*value);
    }
    return wrong(node_);
  }

  std::optional<Value> integer() const {
    const auto value = bare(node_) ? integer_of(node_.scalar) : std::nullopt;
    if (!value || !key_.range.contains(static_cast<double>(*value))) return wrong(node_);
    return Value(*value);
  }

  std::optional<double> number(const YamlNode& node) const {
    const auto value = bare(node) ? number_of(node.scalar) : std::nullopt;
    if (!value || !key_.range.contains(*value)) return wrong(node);
    return value;
  }

  std::optional<std::string> text(const YamlNode& node) const {
    if (node.kind != Kind::scalar || node.scalar.empty()) return wrong(node);
    return node.scalar;
  }

  std::optional<Value> choice() const {
    if (node_.kind != Kind::scalar) return wrong(node_);
    const auto& names = key_.choices;
    if (std::find(names.begin(), names.end(), node_.scalar) != names.end()) return Value(node_.scalar);
    return wrong(node_, advice(node_.scalar, names));
  }

  template <class T, class ReadItem>
  std::optional<Value> list(const ReadItem& read_item) const {
    std::vector<T> values;
    const bool single = node_.kind == Kind::scalar && key_.count == 0;  // a list of one needs no brackets
    if (!single && node_.kind != Kind::list) return wrong(node_);
    if (!single && key_.count != 0 && node_.items.size() != key_.count) return wrong(node_);
    bool good = true;
    const auto take = [&](const YamlNode& item) {
      if (auto value = read_item(item)) {
        values.push_back(std::move(*value));
      } else {
        good = false;
      }
    };
    if (single) take(node_);
    for (const YamlNode& item : node_.items) take(item);
    if (!good) return std::nullopt;
    return Value(std::move(values));
  }

  const KeyDescription& key_;
  const YamlNode& node_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::string KeyDescription::section() const {
  const std::size_t dot = path.find('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

std::string KeyDescription::name() const { return path.substr(path.find('.') + 1); }

std::optional<Value> read_value(const KeyDescription& key, const YamlNode& node, Diagnostics& diagnostics) {
  return Reader(key, node, diagnostics).read();
}

std::string expectation(const KeyDescription& key) {
  switch (key.type) {
    case ValueType::boolean:
      return "true or false";
    case ValueType::integer:
      return with_range("an integer", key.range);
    case ValueType::number:
      return with_range("a number", key.range);
    case ValueType::text:
      return "a text";
    case ValueType::choice:
      return (key.choices.size() > 1 ? "one of " : "") + join(key.choices, ", ");
    case ValueType::path:
      return "a path";
    case ValueType::texts:
      return "a list of texts";
    case ValueType::paths:
      return "a list of paths";
    case ValueType::groups:
      return "a list of groups";
    case ValueType::numbers:
      break;
  }
  std::string many = "a list of ";
  if (key.count != 0) many += std::to_string(key.count) + " ";
  return with_range(many + "numbers", key.range);
}

}  // namespace gpunn::config
