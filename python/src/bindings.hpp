#pragma once

#include <nanobind/nanobind.h>

namespace gpunn::python {

namespace nb = nanobind;

// A subject each, in the file of the same name; module.cpp calls them all.
void bind_errors(nb::module_& module);
void bind_network(nb::module_& module);
void bind_version(nb::module_& module);
void bind_vocabulary(nb::module_& module);

}  // namespace gpunn::python
