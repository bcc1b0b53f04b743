#include "cli/training_verb.hpp"

#include <gpunn/report.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/interrupt.hpp"
#include "cli/json.hpp"
#include "cli/profile.hpp"
#include "cli/progress.hpp"
#include "cli/units.hpp"

namespace gpunn::cli {

namespace {

std::string best_text(const RunResult& result) {
  const std::string value =
      larger_is_better(result.monitor) ? percent_text(result.best_metric) : fmt::format("{:.4f}", result.best_metric);
  return result.monitor == Metric::accuracy ? value : name_of(result.monitor) + " " + value;
}

void print_summary(const RunResult& result) {
  const std::string run = result.run.string();
  if (result.final_test.rows > 0) {
    fmt::print("accuracy  {} of {} test rows, loss {:.4f}\n", percent_text(result.final_test.accuracy),
               count_text(result.final_test.rows), result.final_test.loss);
  }
  if (result.best_epoch > 0) fmt::print("best      epoch {}, {}\n", result.best_epoch, best_text(result));
  fmt::print("time      {} of training, {} in all, on {}\n", duration_text(result.train_seconds),
             duration_text(result.total_seconds), result.backend);
  fmt::print("memory    {} arena, {} parameters and states, {} data\n", bytes_text(result.arena_bytes),
             bytes_text(result.persistent_bytes), bytes_text(result.data_bytes));
  fmt::print("run       {}\n", run);
  if (result.profile) fmt::print("\n{}", profile_text(*result.profile, terminal_of(STDOUT_FILENO).colour));
  if (result.interrupted) {
    fmt::print("\ninterrupted; to go on:\n  gpunn resume {}\n", run);
    return;
  }
  if (result.stopped_early) fmt::print("\nstopped early: no improvement for as long as the experiment allows\n");
  fmt::print("\nnext:\n  gpunn eval {}\n  gpunn predict {} --row 0\n", run, run);
}

// After the summary, so that what goes wrong here takes nothing away from it.
void report_on(const RunResult& result, TrainingListener& announcements, bool json) {
  const std::filesystem::path file = write_report({.run = result.run, .file = {}}, &announcements);
  if (json) {
    print_json_line({{"event", "report"}, {"file", file.string()}});
  } else {
    fmt::print("\nreport    {}\n", file.string());
  }
}

}  // namespace

void add_display_flags(Verb verb, TrainingDisplay& display) {
  verb.add_flag("--quiet", display.quiet, "No progress");
  verb.add_flag("--report", display.report, "Write report.html into the run folder at the end, as `gpunn report` does");
}

ExitCode show_training(const TrainingDisplay& display, const std::function<RunResult(const RunOptions&)>& training) {
  Progress progress(terminal_of(STDERR_FILENO));
  Quiet quiet;
  TrainingListener& shown = display.quiet ? static_cast<TrainingListener&>(quiet) : progress;
  JsonLines json(shown);
  const InterruptGuard interrupt;
  RunOptions options;
  options.listener = display.json ? static_cast<TrainingListener*>(&json) : &shown;
  options.stop = interrupt.flag();
  options.program = "/proc/self/exe";
  RunResult result;
  try {
    result = training(options);
  } catch (...) {
    progress.clear();
    throw;
  }
  progress.clear();
  if (display.json) {
    Json line = {{"event", "result"}};
    line.update(to_json(result));
    print_json_line(line);
  } else {
    print_summary(result);
  }
  if (display.report && !result.interrupted) report_on(result, quiet, display.json);
  return result.interrupted ? ExitCode::interrupted : ExitCode::done;
}

}  // namespace gpunn::cli
