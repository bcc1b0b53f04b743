#include <gpunn/check.hpp>

#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/experiment_options.hpp"
#include "cli/json.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"

namespace gpunn::cli {

namespace {

struct Tally {
  int passed = 0, failed = 0, skipped = 0;
  double error = 0;
};

void print_case(const CheckCase& result, bool verbose) {
  if (result.verdict != Verdict::failed && !verbose) return;
  fmt::print(stderr, "{:<11} {} {} {}  error {:.3g}{}{}\n", name_of(result.verdict), result.suite, result.op,
             result.name, result.error, result.detail.empty() ? "" : ": ", printable(result.detail));
}

void print_report(const CheckReport& report) {
  std::map<std::pair<std::string, std::string>, Tally> tallies;
  for (const CheckCase& result : report.cases) {
    Tally& tally = tallies[{result.suite, result.op}];
    tally.passed += result.verdict == Verdict::passed ? 1 : 0;
    tally.failed += result.verdict == Verdict::failed ? 1 : 0;
    tally.skipped += result.verdict == Verdict::unsupported || result.verdict == Verdict::no_device ? 1 : 0;
    tally.error = std::max(tally.error, result.error);
  }
  const bool colour = terminal_of(STDOUT_FILENO).colour;
  Table table({{"SUITE"},
               {"OP"},
               {"PASSED", Align::right},
               {"FAILED", Align::right},
               {"SKIPPED", Align::right},
               {"WORST", Align::right}});
  for (const auto& [key, tally] : tallies) {
    const std::string failed = std::to_string(tally.failed);
    table.add({key.first, key.second, std::to_string(tally.passed),
               tally.failed > 0 ? coloured(failed, Colour::red, colour) : failed, std::to_string(tally.skipped),
               fmt::format("{:.3f}", tally.error)});
  }
  fmt::print("{}", table.text(colour));
  fmt::print("\n{}: {} passed, {} failed, {} skipped; WORST is the largest error as a share of what is allowed\n",
             report.backend, report.passed, report.failed, report.skipped);
}

}  // namespace

void add_check(CommandLine& line) {
  struct Options {
    CheckOptions check;
    bool verbose = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(line.app, "check", "Compare a backend with the float64 oracle, op by op",
                            {"gpunn check cpu", "gpunn check build/libgpunn_backend_mine.so --op MATMUL --verbose"});
  verb->add_option("backend", options->check.backend, "A backend's name, or a plugin file")
      ->required()
      ->type_name("BACKEND_OR_FILE");
  add_repeated(*verb, "--suite", options->check.suites, "Only this suite (ops, grad); may be repeated")
      ->type_name("NAME");
  add_repeated(*verb, "--op", options->check.ops, "Only this op, as CONV2D; may be repeated")->type_name("NAME");
  add_plugin_option(*verb, options->check.plugins);
  verb->add_flag("--required", options->check.required, "Unsupported ops and a missing device are failures");
  verb->add_option("--seed", options->check.seed, "Of the random inputs")->capture_default_str()->type_name("N");
  verb->add_option("--threads", options->check.threads, "Host threads of the backend; 0: its choice")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  verb->add_flag("--verbose", options->verbose, "Print every case, not only those that fail");
  add_json_flag(*verb, line);
  verb->callback([&line, options] {
    line.action = [&line, options] {
      options->check.on_case = [verbose = options->verbose](const CheckCase& result) { print_case(result, verbose); };
      const CheckReport report = check(options->check);
      if (line.json) {
        print_json(to_json(report));
      } else {
        print_report(report);
      }
      return report.ok() ? ExitCode::done : ExitCode::failed;
    };
  });
}

}  // namespace gpunn::cli
