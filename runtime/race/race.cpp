#include <gpunn/clock.hpp>
#include <gpunn/error.hpp>
#include <gpunn/race.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include "common/files.hpp"
#include "config/checked_backends.hpp"
#include "plugins/plugin.hpp"
#include "race/race_chart.hpp"
#include "runs/own_files.hpp"

namespace gpunn {

namespace {

namespace fs = std::filesystem;

// Collects the curve and passes everything on.
class Recorder : public TrainingListener {
 public:
  Recorder(RaceEntry& entry, TrainingListener* next) : entry_(entry), next_(next != nullptr ? *next : silent_) {}
  void on_message(const std::string& text) override { next_.on_message(text); }
  void on_start(const RunStart& start) override {
    entry_.result.run = start.run;
    next_.on_start(start);
  }
  void on_step(const StepReport& report) override { next_.on_step(report); }
  void on_losses(int64_t first, const std::vector<float>& losses) override {
    entry_.losses.insert(entry_.losses.end(), losses.begin(), losses.end());
    next_.on_losses(first, losses);
  }
  void on_epoch(const EpochReport& report) override {
    // Kept here too: a training that fails later hands no result back.
    entry_.result.epochs.push_back(report);
    next_.on_epoch(report);
  }

 private:
  TrainingListener silent_;
  RaceEntry& entry_;
  TrainingListener& next_;
};

struct Lineup {
  std::vector<std::string> backends;
  std::vector<PluginReport> left_out;
};

// Everything that works here, the reference first; an overlay whose base does not is left out with the base's reason.
Lineup working_backends(const std::vector<fs::path>& plugins) {
  const plugins::PluginRegistry registry(plugins);
  Lineup field;
  std::vector<std::pair<int, std::string>> working;
  for (PluginReport report : registry.reports()) {
    if (report.status == PluginStatus::ok) {
      try {
        registry.chain(report.name);
        working.emplace_back(report.priority, report.name);
        continue;
      } catch (const Error& error) {
        report.status = PluginStatus::no_device;
        report.detail = error.what();
      }
    }
    field.left_out.push_back(std::move(report));
  }
  std::ranges::sort(working);
  for (auto& [priority, name] : working) field.backends.push_back(std::move(name));
  return field;
}

Lineup named_backends(const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    config::require_one_backend(name, "a backend of a race");
    if (!seen.insert(name).second) {
      throw Error("backend '" + name + "' is named twice; each runs once in a race", ExitCode::usage);
    }
  }
  return {names, {}};
}

// A new folder; a second race in the same second gets a number.
fs::path make_folder(const Experiment& experiment) {
  const fs::path wanted = experiment.runs / experiment.name / ("race_" + utc_name());
  std::error_code failure;
  make_folders(wanted.parent_path());
  fs::path folder = wanted;
  for (int i = 2; !failure && !fs::create_directory(folder, failure); ++i) {
    if (!failure) folder = wanted.string() + "-" + std::to_string(i);
  }
  if (failure) throw Error(folder.string() + ": can't create the folder of the race: " + failure.message());
  return folder;
}

// The time of a step in the median epoch.
double step_seconds(const RaceEntry& entry) {
  std::vector<double> epochs;
  int64_t before = 0;
  for (const EpochReport& epoch : entry.result.epochs) {
    const int64_t steps = epoch.global_step - before;
    before = epoch.global_step;
    if (steps > 0) epochs.push_back(epoch.train_seconds / static_cast<double>(steps));
  }
  if (!epochs.empty()) {
    const auto middle = epochs.begin() + static_cast<std::ptrdiff_t>((epochs.size() - 1) / 2);
    std::nth_element(epochs.begin(), middle, epochs.end());
    return *middle;
  }
  return entry.steps > 0 ? entry.result.train_seconds / static_cast<double>(entry.steps) : 0;
}

RaceEntry run(Experiment experiment, const std::string& backend, const fs::path& folder, const RaceOptions& options) {
  experiment.alternatives = false;  // each backend is to run its own kernels
  RaceEntry entry;
  entry.backend = backend;
  experiment.backend = backend;
  experiment.kernels_where_named = true;  // a race of a plugin with names and one without
  Recorder recorder(entry, options.listener);
  // A file's path would be folders.
  std::string name = backend;
  std::ranges::replace(name, '/', '_');
  try {
    entry.result =
        train(experiment, {.listener = &recorder, .stop = options.stop, .run_folder = folder / name, .profile = {}});
  } catch (const ConfigError&) {
    throw;  // a mistake in the experiment is the same for every backend
  } catch (const std::exception& error) {
    entry.failure = error.what();
  }
  entry.steps = static_cast<int64_t>(entry.losses.size());
  entry.step_seconds = step_seconds(entry);
  if (entry.step_seconds > 0) {
    entry.samples_per_second =
        static_cast<double>(experiment.data.batch_size * experiment.accumulate) / entry.step_seconds;
  }
  return entry;
}

void compare_speeds(std::vector<RaceEntry>& entries) {
  const auto first =
      std::ranges::find_if(entries, [](const RaceEntry& e) { return e.failure.empty() && e.step_seconds > 0; });
  if (first == entries.end()) return;
  const double reference = first->step_seconds;
  for (RaceEntry& entry : entries) {
    if (entry.failure.empty() && entry.step_seconds > 0) entry.speed_up = reference / entry.step_seconds;
  }
}

}  // namespace

bool RaceReport::ok() const {
  return !interrupted && std::ranges::all_of(entries, [](const RaceEntry& entry) { return entry.finished(); });
}

RaceReport race(const Experiment& experiment, const RaceOptions& options) {
  Lineup field = options.backends.empty() ? working_backends(experiment.plugins) : named_backends(options.backends);
  if (field.backends.empty()) {
    throw Error("no backend works here, so there is none to race; 'gpunn plugins' says why", ExitCode::missing);
  }
  if (!options.chart.empty()) training::require_output(options.chart, &experiment);
  RaceReport report;
  report.experiment = experiment.name;
  report.left_out = std::move(field.left_out);
  report.folder = make_folder(experiment);
  report.chart = options.chart.empty() ? report.folder / "race.svg" : options.chart;
  for (const std::string& backend : field.backends) {
    if (options.stop != nullptr && options.stop->load()) break;
    if (options.on_begin) options.on_begin(backend);
    report.entries.push_back(run(experiment, backend, report.folder, options));
    if (options.on_end) options.on_end(report.entries.back());
  }
  report.interrupted = report.entries.size() < field.backends.size() ||
                       std::ranges::any_of(report.entries, [](const RaceEntry& e) { return e.result.interrupted; });
  compare_speeds(report.entries);
  write_atomically(report.chart, chart::svg(races::learning_curves(report)));
  return report;
}

}  // namespace gpunn
