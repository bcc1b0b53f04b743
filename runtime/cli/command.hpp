#pragma once

#include <gpunn/error.hpp>

#include <functional>
#include <memory>

#include "cli/parser/arguments.hpp"

namespace gpunn::cli {

// The command line. Each verb's file adds its subcommand, whose callback sets `action`; main runs it once the whole
// line is parsed.
struct CommandLine {
  CommandLine();

  std::shared_ptr<CLI::App> app;
  Verb program;  // all of it
  std::function<ExitCode()> action;
  bool json = false;   // the verb was asked for JSON, so errors are JSON too
  bool quiet = false;  // no display of long work: not asked for, or the verb has its own
};

// The program with all its verbs.
void add_all(CommandLine& line);

void add_json_flag(Verb verb, CommandLine& line);
void add_quiet_flag(Verb verb, CommandLine& line);

}  // namespace gpunn::cli
