#include <gpunn/race.hpp>

#include <string>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errands/listener.hpp"
#include "values/record.hpp"

namespace gpunn::python {

void bind_race(nb::module_& module) {
  Record<RaceEntry>(module, "RaceEntry", "One backend's part in a race. Times in seconds.")
      .field("backend", &RaceEntry::backend)
      .field("failure", &RaceEntry::failure, "Why it did not finish; empty: it did.")
      .computed("finished", [](const RaceEntry& e) { return e.finished(); })
      .field("steps", &RaceEntry::steps)
      .field("step_seconds", &RaceEntry::step_seconds)
      .field("samples_per_second", &RaceEntry::samples_per_second)
      .field("speed_up", &RaceEntry::speed_up, "Over the first entry that finished; 0: unknown.")
      .computed("peak_bytes", [](const RaceEntry& e) { return e.peak_bytes(); })
      .field("result", &RaceEntry::result, "As far as it came.")
      .of()
      .def_ro("losses", &RaceEntry::losses, "Of each step.");
  Record<RaceReport>(module, "RaceReport", "The same experiment on one backend after another.")
      .field("experiment", &RaceReport::experiment)
      .field("folder", &RaceReport::folder, "Of the run folders.")
      .field("chart", &RaceReport::chart, "The SVG file of the learning curves.")
      .field("entries", &RaceReport::entries, "In the order in which they ran.")
      .computed(
          "ok", [](const RaceReport& r) { return r.ok(); }, "Every entry finished.")
      .field("interrupted", &RaceReport::interrupted);
  module.def(
      "race",
      [](const Experiment& experiment, const std::vector<std::string>& backends, const std::filesystem::path& chart,
         nb::handle listener) {
        return on_errand(true, [experiment, backends, chart, listener](Errand& errand) {
          PythonListener told(errand, listener);
          return race(experiment, {.backends = backends,
                                   .chart = chart,
                                   .listener = &told,
                                   .stop = errand.stop(),
                                   .on_begin = [&](const std::string& backend) { told.on_begin(backend); }});
        });
      },
      nb::arg("experiment"), nb::arg("backends"), nb::arg("chart"), nb::arg("listener").none(),
      "Trains an experiment on one backend after another.");
}

}  // namespace gpunn::python
