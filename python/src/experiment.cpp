#include <gpunn/experiment.hpp>

#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "values/settings.hpp"

namespace gpunn::python {

void bind_experiment(nb::module_& module) {
  nb::class_<Experiment>(module, "Experiment", "An experiment that was read and checked.")
      .def_ro("name", &Experiment::name)
      .def_ro("task", &Experiment::task)
      .def_ro("backend", &Experiment::backend)
      .def_ro("epochs", &Experiment::epochs)
      .def_ro("seed", &Experiment::seed)
      .def_prop_ro(
          "model", [](const Experiment& e) { return e.model.name; }, "The name of its model.")
      .def_prop_ro(
          "dataset", [](const Experiment& e) { return e.data.dataset; }, "The name of its data set.")
      .def_rw("runs", &Experiment::runs, "The folder of run folders.")
      .def_rw("plugins", &Experiment::plugins, "Files and folders to find backends in, besides the usual ones.")
      .def_rw("kernels", &Experiment::kernels, "Wanted by name, as \"gemm:3\".")
      .def("yaml", &resolved_yaml, "One YAML document with every key, and the model inline.")
      .def("__repr__", [](const Experiment& e) {
        return "<Experiment " + e.name + ": " + e.model.name + " on " + e.data.dataset + ">";
      });
  module.def(
      "load_experiment",
      [](const std::filesystem::path& file, const Settings& settings) {
        return load_experiment(file, overrides_of(settings));
      },
      nb::arg("file"), nb::arg("settings") = Settings(), "Reads an experiment's file and checks it.");
  module.def(
      "parse_experiment",
      [](const std::string& text, const std::string& origin, const Settings& settings) {
        return parse_experiment(text, origin, overrides_of(settings));
      },
      nb::arg("text"), nb::arg("origin"), nb::arg("settings") = Settings(),
      "Reads an experiment from YAML and checks it. Files that it names are looked for from the working directory; "
      "errors call it `origin`.");
  module.def(
      "data_settings",
      [](const std::string& name) {
        Settings settings;
        for (const Override& one : data_settings(name)) settings.emplace_back(one.key, one.value);
        return settings;
      },
      nb::arg("name"), "The keys of the data that an experiment's file or a data set's name stands for.");
}

}  // namespace gpunn::python
