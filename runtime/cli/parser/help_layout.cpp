#include "cli/parser/help_layout.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include <unistd.h>

#include "cli/terminal/terminal.hpp"

namespace gpunn::cli {

namespace {

constexpr std::size_t kWidestText = 100;
constexpr std::size_t kWidestLeft = 30;  // a longer entry has its text on the next lines

std::string titled(const std::string& title, const HelpRows& rows) {
  return rows.empty() ? std::string() : "\n" + title + ":\n" + two_columns(rows, text_width());
}

std::string verbs_text(const CLI::App& app) {
  // One width for all groups, so that they line up.
  std::size_t widest = 0;
  for (const CLI::App* verb : shown_verbs(app)) widest = std::max(widest, verb->get_display_name(true).size());
  std::string text;
  for (const std::string& group : groups_of(app)) {
    HelpRows rows = verb_rows(app, group);
    for (auto& [name, about] : rows) name.resize(widest, ' ');
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
  std::string text = app->get_description() + "\n\nUsage: " + name + " " + usage_of(*app);
  text += "\n" + verbs_text(*app);
  text += titled("Arguments", argument_rows(*app));
  text += titled("Options", option_rows(*app));
  return text + "\n" + app->get_footer() + "\n";
}

}  // namespace gpunn::cli
