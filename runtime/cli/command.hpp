#pragma once

#include <gpunn/error.hpp>

#include <functional>
#include <memory>

#include "cli/parser/arguments.hpp"

namespace gpunn::cli {

// The command line. Each verb's file adds its subcommand, whose callback sets `action`. main runs the action after the
// whole line is parsed.
struct CommandLine {
  CommandLine();

  std::shared_ptr<CLI::App> app;
  Verb program;  // the whole line
  std::function<ExitCode()> action;
  bool json = false;   // the verb prints JSON, so errors are JSON too
  bool quiet = false;  // show no progress of long work: not wanted, or the verb shows its own
};

// The program with all its verbs.
void add_all(CommandLine& line);

void add_json_flag(Verb verb, CommandLine& line);
void add_quiet_flag(Verb verb, CommandLine& line);

}  // namespace gpunn::cli
