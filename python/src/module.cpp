#include <nanobind/nanobind.h>

#include "bindings.hpp"

NB_MODULE(_core, module) {
  module.doc() = "The public C++ API of libgpunn. Use the package gpunn, which is built on it.";
  gpunn::python::bind_errors(module);
  gpunn::python::bind_network(module);
  gpunn::python::bind_version(module);
  gpunn::python::bind_vocabulary(module);
}
