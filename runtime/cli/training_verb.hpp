#pragma once

#include <gpunn/error.hpp>
#include <gpunn/training.hpp>

#include <functional>

#include "cli/arguments.hpp"

namespace gpunn::cli {

struct TrainingDisplay {
  bool quiet = false;
  bool json = false;
  bool report = false;  // report.html in the run folder, unless the training was interrupted
};

// --quiet and --report.
void add_display_flags(Verb verb, TrainingDisplay& display);

// What `run` and `resume` share: the progress, Ctrl-C, the summary at the end and the report.
ExitCode show_training(const TrainingDisplay& display, const std::function<RunResult(const RunOptions&)>& training);

}  // namespace gpunn::cli
