#include "cli/verbs/training_verb.hpp"

#include <gpunn/report.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/options/profile.hpp"
#include "cli/ranks/rank_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/signals/interrupt.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

std::string best_text(const RunResult& result) {
  const std::string value = score_text({result.monitor, result.best_metric});
  return result.monitor.name == "accuracy" ? value : result.monitor.title + " " + value;
}

void print_summary(const RunResult& result) {
  const std::string run = result.run.string();
  if (result.final_evaluation.rows > 0) {
    const EvalReport& evaluation = result.final_evaluation;
    const Score& telling = evaluation.scores.front();
    put("{:<8}  {} of {} {} rows, loss {:.4f}\n", telling.metric.title, score_text(telling),
        count_text(evaluation.rows), name_of(evaluation.part), evaluation.loss);
  }
  if (result.best_epoch > 0) put("best      epoch {}, {}\n", result.best_epoch, best_text(result));
  put("time      {} of training, {} in all, on {}\n", duration_text(result.train_seconds),
      duration_text(result.total_seconds), result.backend);
  put("memory    {} arena, {} parameters and states, {} data\n", bytes_text(result.arena_bytes),
      bytes_text(result.persistent_bytes), bytes_text(result.data_bytes));
  put("run       {}\n", run);
  if (result.profile) put("\n{}", profile_text(*result.profile, terminal_of(STDOUT_FILENO).colour));
  // The interrupt was already reported when it came.
  if (!result.next.empty()) put("\nnext:\n");
  for (const std::string& command : result.next) put("  {}\n", command);
}

// After the summary, so that an error here does not hide it.
void report_on(const RunResult& result, TrainingListener& announcements, bool json) {
  const std::filesystem::path file = write_report({.run = result.run, .file = {}}, &announcements);
  if (json) {
    print_json_line({{"event", "report"}, {"file", file.string()}});
  } else {
    put("\nreport    {}\n", file.string());
  }
}

}  // namespace

void add_display_flags(Verb verb, CommandLine& line, TrainingDisplay& display) {
  add_quiet_flag(verb, line);
  verb.add_flag("--report", display.report, "Write report.html into the run folder at the end, as `gpunn report` does");
  add_json_flag(verb, line);
}

namespace {

class SilentListener final : public TrainingListener {
 public:
  void on_start(const RunStart& /*start*/) override { InterruptGuard::begin(InterruptGuard::Speech::silent); }
};

// A rank that is not the first.
ExitCode train_silently(const RankPlace& place, const std::function<RunResult(const RunOptions&)>& training) {
  const InterruptGuard interrupt;
  SilentListener listener;
  RunOptions options;
  options.listener = &listener;
  options.stop = interrupt.flag();
  options.place = place;
  try {
    return training(options).interrupted ? ExitCode::interrupted : ExitCode::done;
  } catch (const SharedError& error) {
    return error.code();
  } catch (const Error& error) {
    throw Error("rank " + std::to_string(place.rank) + ": " + error.what(), error.code());
  }
}

}  // namespace

ExitCode show_training(const CommandLine& line, const TrainingDisplay& display, const std::optional<RankPlace>& place,
                       const std::function<RunResult(const RunOptions&)>& training) {
  if (place && place->rank > 0) return train_silently(*place, training);
  Progress progress;
  Quiet quiet;
  TrainingListener& shown = line.quiet ? static_cast<TrainingListener&>(quiet) : progress;
  JsonLines json(shown);
  const InterruptGuard interrupt;
  RunOptions options;
  options.listener = line.json ? static_cast<TrainingListener*>(&json) : &shown;
  options.stop = interrupt.flag();
  options.program = "/proc/self/exe";
  options.place = place;
  RunTeller teller(*options.listener);
  if (place) options.listener = &teller;
  RunResult result;
  try {
    result = training(options);
  } catch (...) {
    progress.clear();
    throw;
  }
  progress.clear();
  if (line.json) {
    Json last = {{"event", "result"}};
    last.update(to_json(result));
    print_json_line(last);
  } else {
    print_summary(result);
  }
  if (display.report && !result.interrupted) report_on(result, quiet, line.json);
  return result.interrupted ? ExitCode::interrupted : ExitCode::done;
}

}  // namespace gpunn::cli
