#include <gpunn/progress.hpp>

#include <string>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "values/record.hpp"

namespace gpunn::python {

void bind_progress(nb::module_& module) {
  Record<WorkReport>(module, "WorkReport", "How far a piece of long work is.")
      .field("id", &WorkReport::id)
      .field("what", &WorkReport::what)
      .field("detail", &WorkReport::detail)
      .computed("unit", [](const WorkReport& w) { return std::string(w.unit == WorkUnit::bytes ? "bytes" : "items"); })
      .field("done", &WorkReport::done)
      .field("total", &WorkReport::total, "0: not known.")
      .field("seconds", &WorkReport::seconds, "Since it began.");
  module.def("long_work", &long_work, "All that goes on in this process, the oldest first.");
}

}  // namespace gpunn::python
