#pragma once

#include <gpunn/error.hpp>

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace gpunn::cli {

// The command line. Each verb's file adds its subcommand, whose callback sets `action`; main runs it once the whole
// line is parsed.
struct CommandLine {
  CLI::App app;
  std::function<ExitCode()> action;
  bool json = false;  // the verb was asked for JSON, so errors are JSON too
};

void add_run(CommandLine& line);
void add_resume(CommandLine& line);
void add_eval(CommandLine& line);
void add_predict(CommandLine& line);
void add_report(CommandLine& line);
void add_export(CommandLine& line);
void add_plugins(CommandLine& line);
void add_plan(CommandLine& line);
void add_diagnose(CommandLine& line);
void add_check(CommandLine& line);
void add_bench(CommandLine& line);
void add_race(CommandLine& line);
void add_data(CommandLine& line);
void add_completion(CommandLine& line);

// The program with all its verbs.
void add_all(CommandLine& line);

// A subcommand with its examples, a line each, under the help.
CLI::App* add_verb(CLI::App& parent, const std::string& name, const std::string& description,
                   const std::vector<std::string>& examples);

void add_json_flag(CLI::App& verb, CommandLine& line);

// For the name of a chart's file.
CLI::Validator svg_file();

// An option that may be given several times, with one value each.
template <typename T>
CLI::Option* add_repeated(CLI::App& verb, const std::string& name, std::vector<T>& values, const std::string& help) {
  return verb.add_option(name, values, help)->allow_extra_args(false);
}

}  // namespace gpunn::cli
