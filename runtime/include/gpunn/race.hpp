#pragma once

#include <gpunn/export.h>
#include <gpunn/plugins.hpp>
#include <gpunn/training.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace gpunn {

// One backend's part in a race.
struct RaceEntry {
  std::string backend;
  std::string failure;  // why it did not finish; empty: finished
  int64_t steps = 0;
  double step_seconds = 0;  // of the median epoch; with less than an epoch, of all steps, including the first slow ones
  double samples_per_second = 0;
  double speed_up = 0;        // over the first entry that finished; 0: unknown
  std::vector<float> losses;  // of each step
  RunResult result;           // up to the point where it stopped
  uint64_t peak_bytes() const { return result.arena_bytes + result.persistent_bytes; }
  bool finished() const { return failure.empty() && !result.interrupted; }
};

// The same training on several backends, compared.
struct GPUNN_API RaceReport {
  std::string experiment;
  std::filesystem::path folder;        // of the run folders
  std::filesystem::path chart;         // the SVG file
  std::vector<RaceEntry> entries;      // in the order in which they ran
  std::vector<PluginReport> left_out;  // plugins that do not work here, with the reason
  bool interrupted = false;
  bool ok() const;  // every entry finished
};

// Which backends race, and who is told of their progress.
struct RaceOptions {
  // In this order. Empty: every backend that works here, by rising priority, so that the reference is first.
  std::vector<std::string> backends;
  std::filesystem::path chart;              // empty: race.svg in the folder of the race
  TrainingListener* listener = nullptr;     // of all the trainings
  const std::atomic<bool>* stop = nullptr;  // set: ends the current training and the race
  // Called when a backend's turn begins, and when it ends.
  std::function<void(const std::string& backend)> on_begin = {};
  std::function<void(const RaceEntry&)> on_end = {};
};

// Trains the same experiment on one backend after another and draws the learning curves. Each training has its own run
// folder in <runs>/<name>/race_<time>. A backend that fails becomes an entry with the reason. Throws Error if there is
// no backend to race, if one is named twice, or if the experiment itself is wrong.
GPUNN_API RaceReport race(const Experiment& experiment, const RaceOptions& options = {});

}  // namespace gpunn
