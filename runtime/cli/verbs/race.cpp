#include <gpunn/race.hpp>

#include <algorithm>
#include <cctype>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/check_report.hpp"
#include "cli/reports/json.hpp"
#include "cli/signals/interrupt.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "cli/terminal/status_line.hpp"
#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

struct RaceArguments {
  ExperimentOptions experiment;
  RaceOptions race;
  ReportFormat format = ReportFormat::text;
};

std::string outcome(const RaceEntry& entry) {
  if (!entry.failure.empty()) return "failed";
  return entry.result.interrupted ? "interrupted" : "done";
}

// "ACCURACY": the column title of the task's most informative metric.
std::string telling_metric(const RaceReport& report) {
  std::string title = "METRIC";
  for (const RaceEntry& entry : report.entries) {
    const Scores& scores = entry.result.final_evaluation.scores;
    if (!scores.empty()) title = scores.front().metric.title;
  }
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return title;
}

Table table_of(const RaceReport& report, bool colour) {
  const bool validated = std::ranges::any_of(report.entries, [](const RaceEntry& entry) {
    return entry.result.final_evaluation.part == EvaluationPart::validation;
  });
  const std::string part = validated ? "VALIDATION" : "TEST";
  const std::string metric = telling_metric(report);
  Table table({{"BACKEND"},
               {"STEP", Align::right},
               {"SAMPLES/s", Align::right},
               {"SPEED-UP", Align::right},
               {part + " LOSS", Align::right},
               {metric, Align::right},
               {"TRAINING", Align::right},
               {"PEAK MEMORY", Align::right},
               {"OUTCOME"}});
  for (const RaceEntry& entry : report.entries) {
    const RunResult& result = entry.result;
    const bool tested = result.final_evaluation.rows > 0;
    const bool scored = tested && !result.final_evaluation.scores.empty();
    const auto known = [](bool is, const std::string& text) { return is ? text : "-"; };
    table.add({printable(entry.backend), known(entry.step_seconds > 0, duration_text(entry.step_seconds)),
               known(entry.samples_per_second > 0, rate_text(entry.samples_per_second)),
               known(entry.speed_up > 0, fmt::format("{:.2f}x", entry.speed_up)),
               known(tested, fmt::format("{:.4f}", result.final_evaluation.loss)),
               known(scored, scored ? score_text(result.final_evaluation.scores.front()) : ""),
               known(result.train_seconds > 0, duration_text(result.train_seconds)),
               known(entry.peak_bytes() > 0, bytes_text(entry.peak_bytes())),
               entry.finished() ? "done" : coloured(outcome(entry), Colour::red, colour)});
  }
  return table;
}

// The backends that could not take part or failed, one on each line.
std::string reasons(const RaceReport& report, bool markdown) {
  std::string text;
  const auto add = [&](const std::string& line) {
    text += markdown ? "- " : "";
    text += printable(line) + "\n";
  };
  for (const RaceEntry& entry : report.entries) {
    if (!entry.failure.empty()) add(entry.backend + " failed: " + entry.failure);
  }
  for (const PluginReport& one : report.left_out) {
    add((one.name.empty() ? one.path.filename().string() : one.name) +
        " did not run: " + std::string(name_of(one.status)) + (one.detail.empty() ? "" : ", " + one.detail));
  }
  return text;
}

void print_report(const RaceReport& report, ReportFormat format) {
  const bool markdown = format == ReportFormat::markdown;
  const bool colour = !markdown && terminal_of(STDOUT_FILENO).colour;
  const Table table = table_of(report, colour);
  put("{}\n", markdown ? table.markdown() : table.text(colour));
  if (const std::string text = reasons(report, markdown); !text.empty()) put("{}\n", text);
  put("{0}chart  {1}\n{0}runs   {2}\n", markdown ? "- " : "", report.chart.string(), report.folder.string());
}

ExitCode run_race(RaceArguments arguments, bool quiet_asked, bool json) {
  const Experiment experiment = arguments.experiment.load();
  Progress progress;
  Quiet quiet;
  arguments.race.listener = quiet_asked ? static_cast<TrainingListener*>(&quiet) : &progress;
  const InterruptGuard interrupt;
  arguments.race.stop = interrupt.flag();
  arguments.race.on_end = [&](const RaceEntry& entry) {
    progress.clear();
    if (!entry.failure.empty()) {
      StatusLine::of_stderr().print("gpunn: " + printable(entry.backend) +
                                    " failed; the reason stands beneath the table");
    }
  };
  const RaceReport report = race(experiment, arguments.race);
  if (json) {
    print_json(to_json(report));
  } else {
    print_report(report, arguments.format);
  }
  if (report.interrupted) return ExitCode::interrupted;
  return report.ok() ? ExitCode::done : ExitCode::failed;
}

}  // namespace

void add_race(CommandLine& line) {
  auto arguments = std::make_shared<RaceArguments>();
  Verb verb =
      line.program.add_verb("race", "Train an experiment on several backends, and compare them",
                            {"gpunn race experiments/lenet_mnist.yaml --epochs 3",
                             "gpunn race experiments/lenet_mnist.yaml --backend cpu --backend mine --format markdown"});
  add_experiment_settings(verb, arguments->experiment);
  verb.add_option("--backend", arguments->race.backends,
                  "A backend to race, in this order; may be repeated. Default: all that work here")
      .repeated()
      .type_name("BACKEND");
  verb.add_option("--chart", arguments->race.chart,
                  "SVG file for the learning curves, instead of race.svg beside the runs")
      .svg_file()
      .type_name("FILE.svg");
  const std::vector<std::pair<std::string, ReportFormat>> formats{{"text", ReportFormat::text},
                                                                  {"markdown", ReportFormat::markdown}};
  verb.add_choice("--format", arguments->format, formats, "Format of the table");
  verb.add_option("--runs", arguments->experiment.runs, "Folder for run folders instead of ./runs").type_name("DIR");
  add_quiet_flag(verb, line);
  add_json_flag(verb, line);
  verb.callback(
      [&line, arguments] { line.action = [&line, arguments] { return run_race(*arguments, line.quiet, line.json); }; });
}

}  // namespace gpunn::cli
