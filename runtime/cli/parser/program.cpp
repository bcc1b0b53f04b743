#include "cli/parser/program.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/parser/suggest.hpp"
#include "cli/ranks/rank_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/status_line.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/work_display.hpp"

namespace gpunn::cli {
namespace {

void print_error(const std::string& message) {
  StatusLine& line = StatusLine::of_stderr();
  line.print(coloured("gpunn:", Colour::red, line.terminal().colour) + " " + printable(message));
}

ExitCode report(const CommandLine& line, const std::string& message, ExitCode code,
                const std::vector<Diagnostic>& diagnostics = {}) {
  if (line.json) {
    Json list = Json::array();
    for (const Diagnostic& one : diagnostics) {
      list.push_back(
          {{"file", one.where.file}, {"line", one.where.line}, {"column", one.where.column}, {"message", one.message}});
    }
    print_json_line({{"error", {{"code", static_cast<int>(code)}, {"message", message}, {"diagnostics", list}}}});
  }
  if (diagnostics.empty()) {
    print_error(message);
  } else {
    // In the form of compilers' messages, so that editors find the places.
    for (const Diagnostic& one : diagnostics) StatusLine::of_stderr().print(printable(one.text()));
  }
  return code;
}

// For the parser, help and version are errors too, with exit code 0.
ExitCode report_parse_error(CommandLine& line, const CLI::ParseError& error,
                            const std::vector<std::string>& arguments) {
  if (error.get_exit_code() == 0) {
    std::ostringstream text;
    line.app->exit(error, text, text);
    write_to_stdout(text.str());
    return ExitCode::done;
  }
  // The flag may stand behind what stopped the parser.
  line.json = line.json || std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  const CLI::App& verb = verb_of(*line.app, arguments);
  std::string message = explain(*line.app, arguments);
  if (message.empty()) message = error.what();
  const bool verb_is_missing = message == error.what() && verb.get_require_subcommand_min() > 0;
  if (verb_is_missing) {
    StatusLine::of_stderr().print(verb.help(verb.get_parent() == nullptr ? "" : full_name(*verb.get_parent())));
    message = "a subcommand is required: one of these verbs";
  } else {
    message += "\ntry '" + full_name(verb) + " --help'";
  }
  return report(line, message, ExitCode::usage);
}

}  // namespace

ExitCode run_program(int argc, char** argv) {
  CommandLine line;
  add_all(line);
  try {
    line.app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(line, error, std::vector<std::string>(argv + 1, argv + argc));
  }
  try {
    std::optional<WorkDisplay> display;
    if (!line.quiet && !is_silent_rank()) display.emplace(true);
    return line.action();
  } catch (const ConfigError& error) {
    return report(line, error.what(), error.code(), error.diagnostics());
  } catch (const Error& error) {
    return report(line, error.what(), error.code());
  } catch (const std::bad_alloc&) {
    return report(line, "not enough memory", ExitCode::failed);
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string path = error.path1().string();
    return report(line, "can't use " + path + ": " + error.code().message(), ExitCode::failed);
  } catch (const std::exception& error) {
    return report(line, std::string("internal error: ") + error.what(), ExitCode::failed);
  }
}

}  // namespace gpunn::cli
