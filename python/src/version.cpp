#include <gpunn/version.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings.hpp"

namespace gpunn::python {

void bind_version(nb::module_& module) {
  module.def("version", &version, "The version of libgpunn, as \"0.2.0\".");
  module.def("build_record", &build_record, "Compiler, flags and library versions, a line each.");
}

}  // namespace gpunn::python
