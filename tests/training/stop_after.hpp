#pragma once

#include <gpunn/training.hpp>

#include <atomic>
#include <filesystem>

#include "catch.hpp"

namespace gpunn::testing {

// Asks for a stop after so many reports of a step.
class StopAfter : public TrainingListener {
 public:
  explicit StopAfter(int reports) : left_(reports) {}
  void on_step(const StepReport&) override {
    if (--left_ <= 0) stop = true;
  }
  std::atomic<bool> stop{false};

 private:
  int left_;
};

// An experiment trained at a stretch, in folder/a, and stopped after so many reports and resumed, in folder/b.
struct StraightAndResumed {
  RunResult straight, resumed;
};

inline StraightAndResumed straight_and_resumed(const Experiment& experiment, const std::filesystem::path& folder,
                                               int reports) {
  const RunResult straight = train(experiment, {.listener = nullptr, .stop = nullptr, .run_folder = folder / "a"});
  StopAfter stop(reports);
  const RunResult part = train(experiment, {.listener = &stop, .stop = &stop.stop, .run_folder = folder / "b"});
  REQUIRE(part.interrupted);
  return {straight, resume(part.run, {})};
}

}  // namespace gpunn::testing
