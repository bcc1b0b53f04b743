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

void add_run(CommandLine& line);
void add_resume(CommandLine& line);
void add_eval(CommandLine& line);
void add_predict(CommandLine& line);
void add_report(CommandLine& line);
void add_export(CommandLine& line);
void add_plugins(CommandLine& line);
void add_plan(CommandLine& line);
void add_summary(CommandLine& line);
void add_diagnose(CommandLine& line);
void add_check(CommandLine& line);
void add_bench(CommandLine& line);
void add_race(CommandLine& line);
void add_data(CommandLine& line);
void add_completion(CommandLine& line);
void add_help(CommandLine& line);

// The program with all its verbs.
void add_all(CommandLine& line);

void add_json_flag(Verb verb, CommandLine& line);
void add_quiet_flag(Verb verb, CommandLine& line);

}  // namespace gpunn::cli
