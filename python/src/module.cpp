#include <nanobind/nanobind.h>

#include "bindings.hpp"

NB_MODULE(_core, module) {
  using namespace gpunn::python;
  module.doc() = "The public C++ API of libgpunn. Use the package gpunn, which is built on it.";
  bind_errors(module);
  bind_version(module);
  bind_process(module);
  bind_reports(module);
  bind_experiment(module);
  bind_training(module);
  bind_evaluation(module);
  bind_model(module);
  bind_quantize(module);
  bind_stylize(module);
  bind_plan(module);
  bind_race(module);
  bind_bench(module);
  bind_check(module);
  bind_data(module);
  bind_plugins(module);
  bind_progress(module);
  bind_network(module);
  bind_vocabulary(module);
  bind_ops(module);
}
