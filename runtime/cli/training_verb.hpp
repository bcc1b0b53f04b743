#pragma once

#include <gpunn/error.hpp>
#include <gpunn/training.hpp>

#include <functional>

namespace gpunn::cli {

struct TrainingDisplay {
  bool quiet = false;
  bool json = false;
};

// What `run` and `resume` share: the progress, Ctrl-C, and the summary at the end.
ExitCode show_training(const TrainingDisplay& display, const std::function<RunResult(const RunOptions&)>& training);

}  // namespace gpunn::cli
