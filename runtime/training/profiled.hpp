#pragma once

#include <gpunn/training.hpp>

#include "execution/measurement/profiler.hpp"
#include "runs/own_files.hpp"

namespace gpunn::training {

// Runs `training` with a profiler if requested, and writes its trace. A training that fails is traced as well, if the
// file's name is known.
template <class F>
RunResult profiled(const Experiment& experiment, const RunOptions& options, F training) {
  if (!options.profile) return training(nullptr);
  const std::filesystem::path& file = options.profile->file;
  if (!file.empty()) require_output(file, &experiment);
  execution::Profiler profiler(*options.profile);
  RunResult result;
  try {
    result = training(&profiler);
  } catch (const Error&) {
    try {
      if (!file.empty()) profiler.write(file);
    } catch (const Error&) {  // the first error is the one to tell
    }
    throw;
  }
  result.profile = profiler.report();
  result.profile->file = file.empty() ? result.run / "trace.json" : file;
  profiler.write(result.profile->file);
  return result;
}

}  // namespace gpunn::training
