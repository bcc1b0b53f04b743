#include "cli/parser/help_layout.hpp"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include <unistd.h>

#include "cli/terminal.hpp"

namespace gpunn::cli {

namespace {

constexpr std::size_t kWidestText = 100;
constexpr std::size_t kWidestLeft = 30;  // what is longer has its text on the lines below

std::string titled(const std::string& title, const HelpRows& rows) {
  return rows.empty() ? std::string() : "\n" + title + ":\n" + two_columns(rows, text_width());
}

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

std::vector<const CLI::App*> shown_verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

std::string verbs_text(const CLI::App& app) {
  std::string text;
  std::vector<std::string> groups;
  for (const CLI::App* verb : shown_verbs(app)) {
    if (std::ranges::find(groups, verb->get_group()) == groups.end()) groups.push_back(verb->get_group());
  }
  // One width for all, so that the groups line up.
  std::size_t widest = 0;
  for (const CLI::App* verb : shown_verbs(app)) widest = std::max(widest, verb->get_display_name(true).size());
  for (const std::string& group : groups) {
    HelpRows rows;
    for (const CLI::App* verb : shown_verbs(app)) {
      if (verb->get_group() != group) continue;
      std::string name = verb->get_display_name(true);
      name.resize(widest, ' ');
      rows.emplace_back(name, verb->get_description());
    }
    text += titled(group == "Subcommands" ? "Verbs" : group, rows);
  }
  return text;
}

}  // namespace

std::string two_columns(const HelpRows& rows, std::size_t width) {
  std::size_t left = 0;
  for (const auto& [name, text] : rows) {
    if (name.size() <= kWidestLeft) left = std::max(left, name.size());
  }
  const std::size_t indent = 2 + left + 2;
  std::string result;
  for (const auto& [name, text] : rows) {
    std::string line = "  " + name;
    if (line.size() + 2 > indent) {
      result += line + "\n";
      line.clear();
    }
    line.resize(indent, ' ');
    std::istringstream words(text);
    bool empty = true;
    for (std::string word; words >> word;) {
      if (!empty && line.size() + 1 + word.size() > width) {
        result += line + "\n";
        line.assign(indent, ' ');
        empty = true;
      }
      line += (empty ? "" : " ") + word;
      empty = false;
    }
    result += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return result;
}

std::size_t text_width() { return std::min(columns_of(STDOUT_FILENO), kWidestText); }

std::string HelpLayout::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode /*mode*/) const {
  std::string text = app->get_description() + "\n\nUsage: " + name + " [OPTIONS]";
  if (!shown_verbs(*app).empty()) text += " VERB ...";
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional()) text += " " + argument_text(*option);
  }
  text += "\n" + verbs_text(*app);
  text += titled("Arguments", rows_of(*app, true));
  text += titled("Options", rows_of(*app, false));
  return text + "\n" + app->get_footer() + "\n";
}

}  // namespace gpunn::cli
