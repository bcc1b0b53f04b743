#pragma once

#include <gpunn/error.hpp>
#include <gpunn/training.hpp>

#include <functional>
#include <optional>

#include "cli/command.hpp"

namespace gpunn::cli {

struct TrainingDisplay {
  bool report = false;  // report.html in the run folder, unless the training was interrupted
};

// The options --quiet, --json and --report.
void add_display_flags(Verb verb, CommandLine& line, TrainingDisplay& display);

// The common part of `run` and `resume`: progress, Ctrl-C, the summary at the end and the report. Of several ranks only
// the first prints anything.
ExitCode show_training(const CommandLine& line, const TrainingDisplay& display, const std::optional<RankPlace>& place,
                       const std::function<RunResult(const RunOptions&)>& training);

}  // namespace gpunn::cli
