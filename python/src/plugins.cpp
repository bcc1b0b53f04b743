#include <gpunn/plugins.hpp>

#include <string>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errands/errand.hpp"
#include "values/record.hpp"

namespace gpunn::python {

void bind_plugins(nb::module_& module) {
  Record<PluginReport>(module, "PluginReport", "What became of one file that looked like a plugin.")
      .field("name", &PluginReport::name)
      .computed(
          "status", [](const PluginReport& p) { return std::string(name_of(p.status)); },
          "\"OK\", \"NO_DEVICE\", \"DEPENDENCY_MISSING\", ...")
      .field("detail", &PluginReport::detail, "Why it is not OK.")
      .field("version", &PluginReport::version)
      .field("build", &PluginReport::build)
      .field("base", &PluginReport::base)
      .field("priority", &PluginReport::priority)
      .field("devices", &PluginReport::devices)
      .field("path", &PluginReport::path);
  module.def(
      "list_plugins",
      [](const std::vector<std::filesystem::path>& extra) {
        return on_errand(false, [extra](Errand&) { return list_plugins(extra); });
      },
      nb::arg("extra"), "Every plugin that is found, and whether it can be used.");
}

}  // namespace gpunn::python
