// The parameters of a layer against the layer's row: checking and reading.
#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "common/text.hpp"
#include "config/layer_table.hpp"

namespace gpunn::config {

std::vector<std::string> forms(const LayerKey& key) {
  std::vector<std::string> result;
  const bool has_sides = key.kind != LayerValue::sizes;
  switch (key.dimensions) {
    case 0:
      result = {"one for each dimension"};
      if (has_sides) result.emplace_back("one for each side");
      break;
    case 1:
      if (has_sides) result = {"[left, right]"};
      break;
    case 2:
      result = {"[rows, columns]"};
      if (has_sides) result.emplace_back("[top, bottom, left, right]");
      break;
    default:
      result = {"[planes, rows, columns]"};
      if (has_sides) result.emplace_back("[front, back, top, bottom, left, right]");
  }
  if (key.kind == LayerValue::padding) result.emplace_back("same");
  return result;
}

namespace {

bool has_dimensions(LayerValue kind) {
  return kind == LayerValue::sizes || kind == LayerValue::padding || kind == LayerValue::margins;
}

std::string expectation(const LayerKey& key) {
  const std::string range = key.range.text();
  const std::string suffix = range.empty() ? range : (range.starts_with("at") ? " of " : " ") + range;
  switch (key.kind) {
    case LayerValue::integer:
      return "an integer" + suffix;
    case LayerValue::number:
      return "a number" + suffix;
    case LayerValue::boolean:
      return "true or false";
    case LayerValue::choice:
      return "one of " + join(key.choices, ", ");
    case LayerValue::sizes:
    case LayerValue::padding:
    case LayerValue::margins: {
      std::string result = "an integer" + suffix;
      for (const std::string& form : forms(key)) result += ", or " + form;
      return result;
    }
    case LayerValue::list:
      return "a list of integers" + (range.empty() ? range : ", each " + range);
    case LayerValue::op:
      return "the name of an op";
  }
  return {};
}

// The names of all ops, as the catalogue of the Python package has them: "conv2d".
const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result = {
#define GPUNN_OP(name, id, attributes, signature, summary) #name,
#include <gpunn/op_list.inc>
#undef GPUNN_OP
    };
    for (std::string& name : result) {
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    }
    return result;
  }();
  return names;
}

bool integer_fits(const std::string& text, const Range& range) {
  const std::optional<int64_t> value = integer_of(text);
  return value && range.contains(static_cast<double>(*value));
}

// Whether that many values may stand for one.
bool takes(const LayerKey& key, std::size_t values) {
  if (values == 1 || key.kind == LayerValue::list) return true;
  if (!has_dimensions(key.kind)) return false;
  const std::size_t least = key.dimensions == 0 ? 1 : key.dimensions;
  const std::size_t most = key.dimensions == 0 ? kMostSpace : key.dimensions;
  for (std::size_t n = least; n <= most; ++n) {
    if (values == n || (key.kind != LayerValue::sizes && values == 2 * n)) return true;
  }
  return false;
}

bool fits(const LayerKey& key, const std::vector<std::string>& values) {
  if (values.empty() || !takes(key, values.size())) return false;
  const std::string& first = values.front();
  switch (key.kind) {
    case LayerValue::integer:
      return integer_fits(first, key.range);
    case LayerValue::number: {
      const std::optional<double> value = number_of(first);
      return value && key.range.contains(*value);
    }
    case LayerValue::boolean:
      return boolean_of(first).has_value();
    case LayerValue::choice:
      return std::find(key.choices.begin(), key.choices.end(), first) != key.choices.end();
    case LayerValue::op:
      return std::ranges::find(op_names(), first) != op_names().end();
    case LayerValue::padding:
      if (values.size() == 1 && first == "same") return true;
      break;
    case LayerValue::sizes:
    case LayerValue::margins:
    case LayerValue::list:
      break;
  }
  return std::all_of(values.begin(), values.end(),
                     [&](const std::string& value) { return integer_fits(value, key.range); });
}

std::string shown(const std::vector<std::string>& values) {
  if (values.size() == 1) return in_quotes(values.front());
  std::string result = "[";
  result += join(values, ", ");
  return result + "]";
}

std::string title(const LayerSpec& layer) { return layer.type + " '" + layer.name + "'"; }

std::vector<std::string> names_of(const LayerType& type) {
  std::vector<std::string> names = {"name", "from"};
  for (const LayerKey& key : type.keys) names.push_back(key.name);
  return names;
}

}  // namespace

namespace {

// The text of what is wrong with a value; empty: nothing.
std::string value_error(const LayerSpec& layer, const LayerKey& key, const std::vector<std::string>& values) {
  if (fits(key, values)) return {};
  std::string message =
      key.name + " of " + title(layer) + ": expected " + expectation(key) + ", found " + shown(values);
  if (key.kind == LayerValue::choice && values.size() == 1) {
    message += advice(values.front(), key.choices);
  } else if (key.kind == LayerValue::op && values.size() == 1) {
    message += did_you_mean(values.front(), op_names());
  }
  return message;
}

std::string input_error(const LayerSpec& layer, const LayerType& type) {
  const std::size_t inputs = layer.from.empty() && type.inputs > 0 ? 1 : layer.from.size();
  const auto least = static_cast<std::size_t>(type.inputs);
  const auto most = static_cast<std::size_t>(std::max(type.inputs, type.most_inputs));
  if (inputs >= least && inputs <= most) return {};
  return title(layer) + " takes " + std::to_string(least) + (most > least ? " to " + std::to_string(most) : "") +
         (most == 1 ? " input" : " inputs, named as from: [a, b]") + ", found " + std::to_string(inputs);
}

}  // namespace

void check_layer(const LayerSpec& layer, Diagnostics& diagnostics) {
  const LayerType* type = find_layer_type(layer.type);
  if (type == nullptr) {
    diagnostics.add(layer.where, "unknown layer " + in_quotes(layer.type) +
                                     advice_or_list(layer.type, layer_type_names(), kLayersCommand) + layer.origin);
    return;
  }
  bool good = true;
  const auto report = [&](const SourceLocation& where, const std::string& message) {
    if (message.empty()) return;
    good = false;
    diagnostics.add(where, message + layer.origin);
  };
  std::set<std::string> given;
  for (const LayerParameter& parameter : layer.parameters) {
    given.insert(parameter.name);
    const LayerKey* key = type->find(parameter.name);
    if (key == nullptr) {
      if (type->op_attributes) continue;
      report(parameter.where, "unknown key " + in_quotes(parameter.name) + " in " + title(layer) +
                                  advice_or_list(parameter.name, names_of(*type), kLayersCommand));
    } else if (parameter.values.empty()) {
      good = false;  // the reader has said why
    } else {
      report(parameter.where, value_error(layer, *key, parameter.values));
    }
  }
  for (const LayerKey& key : type->keys) {
    if (key.fallback.empty() && given.count(key.name) == 0) {
      report(layer.where, title(layer) + " needs '" + key.name + "': " + expectation(key));
    }
  }
  report(layer.where, input_error(layer, *type));
  if (!good || type->check == nullptr) return;
  const std::string reason = type->check(LayerArguments(*type, layer));
  if (!reason.empty()) report(layer.where, title(layer) + ": " + reason);
}

std::vector<std::string> LayerArguments::texts(std::string_view key) const {
  for (const LayerParameter& parameter : layer_.parameters) {
    if (parameter.name == key) return parameter.values;
  }
  const LayerKey* row = type_.find(key);
  if (row == nullptr || row->fallback.empty()) {
    throw Error(title(layer_) + " has no '" + std::string(key) + "'", ExitCode::usage);
  }
  return type_.find(row->fallback) != nullptr ? texts(row->fallback) : std::vector{row->fallback};
}

int64_t LayerArguments::integer(std::string_view key) const { return integer_of(texts(key).front()).value(); }
double LayerArguments::number(std::string_view key) const { return number_of(texts(key).front()).value(); }
bool LayerArguments::boolean(std::string_view key) const { return boolean_of(texts(key).front()).value(); }
std::string LayerArguments::choice(std::string_view key) const { return texts(key).front(); }
bool LayerArguments::is_same(std::string_view key) const { return texts(key).front() == "same"; }

std::vector<int64_t> LayerArguments::list(std::string_view key) const {
  std::vector<int64_t> values;
  for (const std::string& text : texts(key)) values.push_back(integer_of(text).value());
  return values;
}

std::vector<int64_t> LayerArguments::sizes(std::string_view key, std::size_t dimensions) const {
  std::vector<int64_t> given = list(key);
  if (given.size() == 1) return std::vector<int64_t>(dimensions, given.front());
  if (given.size() == dimensions) return given;
  throw Error(std::string(key) + ": expected an integer, or one for each of the input's " + std::to_string(dimensions) +
                  " dimensions behind the channels, found " + shown(texts(key)),
              ExitCode::usage);
}

std::vector<int64_t> LayerArguments::margins(std::string_view key, std::size_t dimensions) const {
  std::vector<int64_t> given = list(key);
  if (given.size() == 2 * dimensions) return given;
  std::vector<int64_t> sides;
  for (const int64_t size : sizes(key, dimensions)) sides.insert(sides.end(), 2, size);
  return sides;
}

}  // namespace gpunn::config
