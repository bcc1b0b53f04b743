#include <gpunn/check.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/check_report.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/status_line.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/work_display.hpp"

namespace gpunn::cli {

namespace {

void print_case(const CheckCase& result, bool verbose, bool several) {
  if (result.verdict != Verdict::failed && !verbose) return;
  std::string by;
  if (!result.plugin.empty() && result.plugin != result.backend) {
    by = fmt::format(" by {}{}", result.plugin, result.refusal.empty() ? "" : " (" + printable(result.refusal) + ")");
  }
  StatusLine::of_stderr().print(fmt::format("{:<11} {}{} {} {}{}  error {:.3g}{}{}", name_of(result.verdict),
                                            several ? result.backend + " " : "", result.suite, result.op, result.name,
                                            by, result.error, result.detail.empty() ? "" : ": ",
                                            printable(result.detail)));
}

Json json_of(const std::vector<CheckReport>& reports) {
  if (reports.size() == 1) return to_json(reports.front());
  Json list = Json::array();
  bool ok = true;
  for (const CheckReport& report : reports) {
    list.push_back(to_json(report));
    ok = ok && report.ok();
  }
  return {{"ok", ok}, {"backends", list}};
}

}  // namespace

void add_check(CommandLine& line) {
  struct Options {
    CheckOptions check;
    std::vector<std::string> backends;
    ReportFormat format = ReportFormat::text;
    bool verbose = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb =
      line.program.add_verb("check", "Check that backends are right: kernels, gradients, the plugin contract",
                            {"gpunn check cpu", "gpunn check build/libgpunn_backend_mine.so --op MATMUL --verbose",
                             "gpunn check cpu mine --format markdown"});
  verb.add_option("backend", options->backends, "Names of backends, or plugin files")
      .required()
      .type_name("BACKEND|FILE.so");
  verb.add_option(
          "--suite", options->check.suites,
          "Only this suite: nodevice, abi, ops, grad, state, stream, graph, subgraphs, train, perf; may be repeated")
      .repeated()
      .type_name("SUITE");
  verb.add_option("--op", options->check.ops, "Only this op, as CONV2D; may be repeated").repeated().type_name("OP");
  verb.add_option("--case", options->check.cases,
                  "Only cases with this text in op or name, as --verbose prints them: 'f32[65, 66]'; may be repeated")
      .repeated()
      .type_name("TEXT");
  verb.add_option("--without", options->check.without,
                  "Skip cases with this text in op or name, as 20011, a sum too long for a sanitizer; may be repeated")
      .repeated()
      .type_name("TEXT");
  verb.add_option("--kernel", options->check.kernels,
                  "Only the kernel of this name, as gemm:3; may be repeated; default: all kernels")
      .repeated()
      .type_name("KERNEL");
  verb.add_flag("--quick", options->check.quick,
                "Of an op's cases with more than 20,000 elements, run one for each kernel, type and layout");
  add_plugin_option(verb, options->check.plugins);
  std::vector<std::string> profiles;
  for (const CheckProfile& profile : check_profiles()) profiles.push_back(profile.name);
  verb.add_option("--profile", options->check.profile,
                  "Profile that must run: its unsupported ops, and a missing device, are failures")
      .one_of(profiles);
  verb.add_flag_callback(
          "--required", [options] { options->check.profile = "all"; }, "The same as --profile all")
      .excludes("--profile");
  const std::vector<std::pair<std::string, Precision>> precisions{
      {"fp32", Precision::fp32}, {"tf32", Precision::tf32}, {"bf16", Precision::bf16}};
  verb.add_choice("--precision", options->check.precision, precisions,
                  "Precision of the factors of products; tolerances allow for it");
  verb.add_option("--reference", options->check.reference, "Backend to compare with in the suite train")
      .capture_default_str()
      .type_name("BACKEND");
  verb.add_option("--seed", options->check.seed, "Seed of the random inputs").capture_default_str().type_name("N");
  verb.add_option("--threads", options->check.threads, "Host threads of the backend; 0: its choice, the default")
      .range(0, 1024)
      .type_name("N");
  verb.add_flag("--strict", options->check.strict,
                "Check the plugin alone: skip what its base would run, or fail if the profile requires it");
  verb.add_option("--limit", options->check.limit_seconds, "A case that takes longer counts as hung")
      .range(1, 86'400)
      .capture_default_str()
      .type_name("SECONDS");
  verb.add_flag("--in-process", options->check.in_process,
                "Open the backend in this process, for a debugger or a sanitizer; a crash is then the end");
  const std::vector<std::pair<std::string, ReportFormat>> formats{{"text", ReportFormat::text},
                                                                  {"markdown", ReportFormat::markdown}};
  verb.add_choice("--format", options->format, formats, "Format of the table");
  verb.add_flag("--verbose", options->verbose, "Print every case, not only those that fail");
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.quiet = true;  // it has a display of its own
    line.action = [&line, options] {
      const bool several = options->backends.size() > 1;
      WorkDisplay display(false);  // backends run in child processes
      options->check.on_case = [&display, verbose = options->verbose, several](const CheckCase& result) {
        print_case(result, verbose, several);
        display.look();
      };
      const std::vector<CheckReport> reports = check(options->check, options->backends);
      if (line.json) {
        print_json(json_of(reports));
      } else {
        put("{}", check_report(reports, options->format, terminal_of(STDOUT_FILENO).colour));
      }
      const bool ok = std::ranges::all_of(reports, &CheckReport::ok);
      return ok ? ExitCode::done : ExitCode::failed;
    };
  });
}

}  // namespace gpunn::cli
