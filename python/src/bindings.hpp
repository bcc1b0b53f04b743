#pragma once

#include <nanobind/nanobind.h>

namespace gpunn::python {

namespace nb = nanobind;

// A subject each, in the file of the same name; module.cpp calls them all.
void bind_errors(nb::module_& module);
void bind_network(nb::module_& module);
void bind_ops(nb::module_& module);
void bind_version(nb::module_& module);
void bind_vocabulary(nb::module_& module);
void bind_process(nb::module_& module);
void bind_reports(nb::module_& module);
void bind_experiment(nb::module_& module);
void bind_training(nb::module_& module);
void bind_evaluation(nb::module_& module);
void bind_model(nb::module_& module);
void bind_quantize(nb::module_& module);
void bind_stylize(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_race(nb::module_& module);
void bind_bench(nb::module_& module);
void bind_check(nb::module_& module);
void bind_data(nb::module_& module);
void bind_plugins(nb::module_& module);
void bind_progress(nb::module_& module);

}  // namespace gpunn::python
