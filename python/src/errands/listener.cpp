#include "errands/listener.hpp"

#include <memory>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace gpunn::python {

// Constructed on the errand's thread, which has no lock.
PythonListener::PythonListener(Errand& errand, nb::handle listener)
    : errand_(errand), listener_(listener), wants_losses_(false) {
  if (listener.is_none()) return;
  errand.ask([&] { wants_losses_ = nb::cast<bool>(listener_.attr("wants_losses")); });
}

template <typename... Arguments>
void PythonListener::tell(const char* method, const Arguments&... arguments) {
  if (listener_.is_none()) return;
  // Shared: at the end of the interpreter the callback may return when this thread is gone.
  const auto stop = std::make_shared<bool>(false);
  const bool returned = errand_.ask([&, stop] {
    const auto kept = stop;
    *kept = nb::cast<bool>(listener_.attr(method)(nb::cast(arguments, nb::rv_policy::copy)...));
  });
  if (returned && *stop) errand_.request_stop();
}

void PythonListener::on_message(const std::string& text) { tell("on_message", text); }
void PythonListener::on_start(const RunStart& start) {
  tell("on_start", start.experiment, start.run, start.backend, start.device);
}
void PythonListener::on_step(const StepReport& report) { tell("on_step", report); }
void PythonListener::on_losses(int64_t first, const std::vector<float>& losses) {
  if (wants_losses_) tell("on_losses", first, losses);
}
void PythonListener::on_epoch(const EpochReport& report) { tell("on_epoch", report); }
void PythonListener::on_begin(const std::string& backend) { tell("on_begin", backend); }

}  // namespace gpunn::python
