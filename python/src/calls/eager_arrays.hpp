// Arrays of single ops as the package hands them over: tuples (address, dtype, shape, strides or None).
#pragma once

#include <gpunn/ops.hpp>

#include <cstdint>
#include <vector>

#include <nanobind/nanobind.h>

namespace gpunn::python {

namespace nb = nanobind;

int64_t integer(PyObject* value);
Shape shape_of(nb::handle sizes);  // a tuple

// These throw UsageError where an array is neither packed nor channels-last, and Python's own errors.
eager::Array array_of(nb::handle tuple);
std::vector<eager::Array> arrays_of(nb::handle list);
std::vector<TensorType> types_of(nb::handle list);
std::vector<bool> flags_of(nb::handle list);

void bind_call(nb::module_& module);         // of bind_ops
void bind_tensor_call(nb::module_& module);  // of bind_ops
void bind_module_call(nb::module_& module);  // of bind_ops

inline void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace gpunn::python
