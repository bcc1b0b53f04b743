#pragma once

#include <gpunn/training.hpp>

#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "errands/errand.hpp"

namespace gpunn::python {

// Tells a gpunn._listener.Listener what a training tells, on the thread that waits for it. What a method returns says
// whether the training is to stop.
class PythonListener final : public TrainingListener {
 public:
  // `listener` may be None. It outlives the wait of the errand.
  PythonListener(Errand& errand, nb::handle listener);

  void on_message(const std::string& text) override;
  void on_start(const RunStart& start) override;
  void on_step(const StepReport& report) override;
  void on_losses(int64_t first, const std::vector<float>& losses) override;
  void on_epoch(const EpochReport& report) override;

  // A backend's turn in a race.
  void on_begin(const std::string& backend);

 private:
  template <typename... Arguments>
  void tell(const char* method, const Arguments&... arguments);

  Errand& errand_;
  nb::handle listener_;
  bool wants_losses_;
};

}  // namespace gpunn::python
