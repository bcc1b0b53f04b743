#pragma once

#include <gpunn/error.hpp>
#include <gpunn/ranks.hpp>
#include <gpunn/training.hpp>

#include <optional>
#include <string>

#include "cli/command.hpp"

namespace gpunn::cli {

// Options of `run` and `resume`: whether this process trains alone, is one of several, or starts several.
struct RankOptions {
  std::optional<int64_t> devices, rank, world;
  std::optional<int64_t> restarts;
  std::string rendezvous;

  bool starts_others() const;
  // Starts this program once for each device, with the same command line, and waits for their end.
  ExitCode start() const;
  // Empty: alone. Throws Error(usage) if options and environment contradict each other.
  std::optional<RankPlace> place() const;
};

void add_rank_options(Verb verb, RankOptions& options);

// Whether the launcher's environment makes this a rank that prints nothing.
bool is_silent_rank();

// Sends the run folder to the process that started the ranks, and passes every event on.
class RunTeller final : public TrainingListener {
 public:
  explicit RunTeller(TrainingListener& next) : next_(next) {}
  void on_message(const std::string& text) override { next_.on_message(text); }
  void on_start(const RunStart& start) override;
  void on_step(const StepReport& report) override { next_.on_step(report); }
  void on_losses(int64_t first, const std::vector<float>& losses) override { next_.on_losses(first, losses); }
  void on_epoch(const EpochReport& report) override { next_.on_epoch(report); }

 private:
  TrainingListener& next_;
};

}  // namespace gpunn::cli
