#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "cli/parser/help_rows.hpp"

namespace gpunn::cli {

// The layout of --help: usage with the arguments' types, then arguments, options and verbs in two columns.
class HelpLayout : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

// Two columns, the right one wrapped at `width`.
std::string two_columns(const HelpRows& rows, std::size_t width);

// The width of text on stdout: that of the terminal, 100 columns at most.
std::size_t text_width();

}  // namespace gpunn::cli
