#include <gpunn/training.hpp>

#include <optional>
#include <utility>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "errands/errand.hpp"
#include "errands/listener.hpp"
#include "values/settings.hpp"

namespace gpunn::python {

namespace {

namespace fs = std::filesystem;

// The trace's file, which may be empty, and the steps to measure.
using Profile = std::optional<std::pair<fs::path, int64_t>>;

template <typename Training>
RunResult on_errand_with(nb::handle listener, const fs::path& folder, const Profile& profile, const fs::path& program,
                         Training training) {
  return on_errand(
      true,
      [listener, folder, profile, program, training = std::move(training)](Errand& errand) {
        PythonListener told(errand, listener);
        RunOptions options{.listener = &told, .stop = errand.stop(), .run_folder = folder, .program = program};
        if (profile) options.profile = ProfileOptions{.file = profile->first, .steps = profile->second};
        return training(options);
      },
      "a training");
}

}  // namespace

void bind_training(nb::module_& module) {
  module.def(
      "train",
      [](const Experiment& experiment, nb::handle listener, const fs::path& folder, const Profile& profile,
         const fs::path& program) {
        return on_errand_with(listener, folder, profile, program,
                              [experiment](const RunOptions& options) { return train(experiment, options); });
      },
      nb::arg("experiment"), nb::arg("listener").none(), nb::arg("run_folder"), nb::arg("profile").none(),
      nb::arg("program"), "Trains in a new run folder; an empty one is <runs>/<name>/<time>.");
  module.def(
      "resume",
      [](const fs::path& run, const Settings& settings, nb::handle listener, const Profile& profile,
         const fs::path& program, bool keep_schedule) {
        return on_errand_with(listener, {}, profile, program,
                              [run, overrides = overrides_of(settings), keep_schedule](RunOptions options) {
                                options.keep_schedule = keep_schedule;
                                return resume(run, overrides, options);
                              });
      },
      nb::arg("run"), nb::arg("settings"), nb::arg("listener").none(), nb::arg("profile").none(), nb::arg("program"),
      nb::arg("keep_schedule"), "Goes on from the last checkpoint of a run folder, in the same folder.");
}

}  // namespace gpunn::python
