#include "cli/parser/help_rows.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace gpunn::cli {

namespace {

// "EXPERIMENT", "[IMAGE...]"
std::string argument_text(const CLI::Option& argument) {
  std::string text = argument.get_type_name().empty() ? argument.get_name(true) : argument.get_type_name();
  if (argument.get_expected_max() > 1 && text.find("...") == std::string::npos) text += "...";
  return argument.get_required() ? text : "[" + text + "]";
}

std::string left_of(const CLI::Option& option) {
  if (option.get_positional()) return argument_text(option);
  std::string text = option.get_name(false, true);
  const std::size_t comma = text.find(',');
  if (comma != std::string::npos) text.insert(comma + 1, " ");
  if (option.get_items_expected_max() > 0 && !option.get_type_name().empty()) text += " " + option.get_type_name();
  return text;
}

std::string right_of(const CLI::Option& option) {
  std::string text = option.get_description();
  if (!option.get_default_str().empty()) text += " (default: " + option.get_default_str() + ")";
  if (option.get_required() && !option.get_positional()) text += " (required)";
  for (const CLI::Option* other : option.get_needs()) text += " (with " + other->get_name() + ")";
  for (const CLI::Option* other : option.get_excludes()) text += " (not with " + other->get_name() + ")";
  return text;
}

HelpRows rows_of(const CLI::App& app, bool positional) {
  HelpRows rows;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() == positional) rows.emplace_back(left_of(*option), right_of(*option));
  }
  return rows;
}

}  // namespace

HelpRows argument_rows(const CLI::App& verb) { return rows_of(verb, true); }

HelpRows option_rows(const CLI::App& verb) { return rows_of(verb, false); }

std::string usage_of(const CLI::App& verb) {
  std::string text = "[OPTIONS]";
  if (!shown_verbs(verb).empty()) text += " VERB ...";
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_positional()) text += " " + argument_text(*option);
  }
  return text;
}

std::vector<const CLI::App*> shown_verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

std::vector<std::string> groups_of(const CLI::App& app) {
  std::vector<std::string> groups;
  for (const CLI::App* verb : shown_verbs(app)) {
    if (std::ranges::find(groups, verb->get_group()) == groups.end()) groups.push_back(verb->get_group());
  }
  return groups;
}

HelpRows verb_rows(const CLI::App& app, const std::string& group) {
  HelpRows rows;
  for (const CLI::App* verb : shown_verbs(app)) {
    if (verb->get_group() == group) rows.emplace_back(verb->get_display_name(true), verb->get_description());
  }
  return rows;
}

}  // namespace gpunn::cli
