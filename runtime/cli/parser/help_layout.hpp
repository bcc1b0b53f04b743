#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace gpunn::cli {

// How --help looks: usage with the arguments' types, then arguments, options and verbs in two columns.
class HelpLayout : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

using HelpRows = std::vector<std::pair<std::string, std::string>>;

// Two columns, the right one wrapped at `width`.
std::string two_columns(const HelpRows& rows, std::size_t width);

// How wide text on stdout may be: the terminal, 100 columns at most.
std::size_t text_width();

}  // namespace gpunn::cli
