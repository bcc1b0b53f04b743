#include "config/block_arguments.hpp"

#include <gpunn/words.hpp>

#include "common/text.hpp"
#include "config/substitution.hpp"
#include "config/values.hpp"

namespace gpunn::config {

namespace {

using Kind = YamlNode::Kind;

}  // namespace

BlockArguments::BlockArguments(const BlockUse& use, const EntryValues& values, const EntryValues::Report& report)
    : use_(use), report_(report), title_("the block " + in_quotes(use.block->name)) {
  if (use.arguments == nullptr || use.arguments->kind == Kind::null) return;
  if (use.arguments->kind != Kind::map) {
    report_(use.arguments->where, title_ + ": expected a map of parameters, found " + describe(*use.arguments));
    sound_ = false;
    return;
  }
  for (const YamlEntry& entry : use.arguments->entries) sound_ = take(entry, values) && sound_;
  if (sound_ && !first_.empty() && !count_) {
    report_(use.where, title_ + ": 'first' is for a block with 'repeat'");
    sound_ = false;
  }
}

bool BlockArguments::take(const YamlEntry& entry, const EntryValues& values) {
  if (entry.key == "from") return true;
  if (entry.key == "name") {
    const std::optional<std::string> name = values.name(entry.value, "name", false);
    name_ = name.value_or("");
    return name.has_value();
  }
  if (entry.key == "when") {
    const std::optional<bool> used = values.truth(entry.value, "when");
    used_ = used.value_or(false);
    return used.has_value();
  }
  if (entry.key == "repeat") {
    count_ = values.count(entry.value, "repeat", 1);
    return count_.has_value();
  }
  if (entry.key != "first") {
    take_parameter(entry, values, given_, {"name", "from", "when", "repeat", "first"});
    return sound_;
  }
  if (entry.value.kind != Kind::map) {
    report_(entry.value.where,
            "first: expected a map of parameters for the first of the blocks, found " + describe(entry.value));
    return false;
  }
  for (const YamlEntry& inner : entry.value.entries) take_parameter(inner, values, first_, {});
  return sound_;
}

void BlockArguments::take_parameter(const YamlEntry& entry, const EntryValues& values, ParameterValues& given,
                                    const std::vector<std::string>& others) {
  const BlockParameter* parameter = use_.block->find(entry.key);
  if (parameter == nullptr) {
    std::vector<std::string> names;
    for (const BlockParameter& known : use_.block->parameters) names.push_back(known.name);
    names.insert(names.end(), others.begin(), others.end());
    report_(entry.where, "unknown parameter " + in_quotes(entry.key) + " of " + title_ +
                             (names.empty() ? "; it has none" : did_you_mean_or_list(entry.key, names)));
    sound_ = false;
    return;
  }
  const std::optional<std::string> text = values.text(entry.value, entry.key);
  sound_ = sound_ && text.has_value();
  if (!text) return;
  const std::optional<std::string>& fallback = parameter->fallback;
  if (fallback && fallback->find('$') == std::string::npos && !same_kind(*text, *fallback)) {
    report_(entry.value.where, "parameter " + in_quotes(entry.key) + " of " + title_ + ": expected a value like " +
                                   in_quotes(*fallback) + ", found " + in_quotes(*text));
    sound_ = false;
  }
  given[entry.key] = *text;
}

std::optional<ParameterValues> BlockArguments::values_of(int64_t instance, const ParameterValues& model) const {
  ParameterValues result = model;
  for (const BlockParameter& parameter : use_.block->parameters) {
    const auto first = instance == 0 ? first_.find(parameter.name) : first_.end();
    const auto given = given_.find(parameter.name);
    if (first != first_.end()) {
      result[parameter.name] = first->second;
    } else if (given != given_.end()) {
      result[parameter.name] = given->second;
    } else if (!parameter.fallback) {
      report_(use_.where, title_ + " needs " + in_quotes(parameter.name) + ", which has no default");
      return std::nullopt;
    } else {
      try {
        result[parameter.name] = substitute(*parameter.fallback, result);
      } catch (const Error& error) {
        report_(use_.block->where, "parameter " + in_quotes(parameter.name) + " of " + title_ + ": " + error.what());
        return std::nullopt;
      }
    }
  }
  return result;
}

}  // namespace gpunn::config
