#pragma once

#include <gpunn/training.hpp>

#include <atomic>

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

}  // namespace gpunn::testing
