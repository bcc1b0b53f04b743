#include "cli/parser/suggest.hpp"

#include <gpunn/vocabulary.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>

namespace gpunn::cli {

namespace {

constexpr std::size_t kMostListed = 8;  // most verbs or options in a message

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    names.push_back(verb->get_name());
    for (const std::string& alias : verb->get_aliases()) names.push_back(alias);
  }
  return names;
}

// Without the dashes.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string listed(const std::vector<std::string>& words, const CLI::App& verb) {
  if (words.size() > kMostListed) return "; '" + full_name(verb) + " --help' lists them";
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "; there are " : ", ") + word;
  return text;
}

bool is_yaml_file(const std::string& word) { return word.ends_with(".yaml") || word.ends_with(".yml"); }

std::string unknown_verb(const CLI::App& verb, const std::string& word) {
  const std::string message = "there is no verb '" + word + "'";
  const std::vector<std::string> names = verb_names(verb);
  if (is_yaml_file(word) && contains(names, "run")) {
    return message + "; did you mean '" + full_name(verb) + " run " + word + "'?";
  }
  const std::string hint = advice(word, names);
  return message + (hint.empty() ? listed(names, verb) : hint);
}

// The key of the experiment that `name` may mean, as an argument of --set.
std::string as_setting(const CLI::App& verb, const std::string& name) {
  const std::vector<std::string> keys =
      contains(option_names(verb), "set") ? nearest_keys("", name) : std::vector<std::string>();
  return keys.empty() ? std::string() : "; did you mean '--set " + keys.front() + "=VALUE'?";
}

std::string unknown_option(const CLI::App& verb, const std::string& name) {
  const std::vector<std::string> names = option_names(verb);
  std::vector<std::string> near;
  for (const std::string& one : best_matches(name, names)) near.push_back("--" + one);
  std::string hint;
  if (const std::string_view about = explanation(name); !about.empty()) {
    hint = ". " + std::string(about);
  } else if (!near.empty()) {
    hint = "; did you mean '" + near.front() + "'?";
  } else {
    hint = as_setting(verb, name);
  }
  if (hint.empty()) {
    for (const std::string& one : names) near.push_back("--" + one);
    hint = listed(near, verb);
  }
  return "'" + verb.get_name() + "' has no option '--" + name + "'" + hint;
}

}  // namespace

std::string full_name(const CLI::App& verb) {
  const CLI::App* above = verb.get_parent();
  return above == nullptr ? verb.get_name() : full_name(*above) + " " + verb.get_name();
}

const CLI::App& verb_of(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* verb = &app;
  for (const std::string& argument : arguments) {
    if (contains(verb_names(*verb), argument)) verb = verb->get_subcommand(argument);
  }
  return *verb;
}

std::string explain(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* verb = &app;
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    const bool option = argument.size() > 2 && argument.compare(0, 2, "--") == 0;
    if (!option && argument.size() > 1 && argument[0] == '-') continue;  // a short option, or a negative number
    const std::string word = option ? argument.substr(2, argument.find('=') - 2) : argument;
    const std::vector<std::string> names = option ? option_names(*verb) : verb_names(*verb);
    if (contains(names, word)) {
      if (!option) verb = verb->get_subcommand(word);
      continue;
    }
    if (names.empty()) continue;
    return option ? unknown_option(*verb, word) : unknown_verb(*verb, word);
  }
  return "";
}

}  // namespace gpunn::cli
