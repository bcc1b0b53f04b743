// What strings of Python stand for.
#pragma once

#include <gpunn/precision.hpp>
#include <gpunn/tensor_type.hpp>

#include <string>

namespace gpunn::python {

// Each throws Error(usage), with the words that there are, for another.
Precision precision_named(const std::string& name);
DType dtype_named(const std::string& name);
Layout layout_named(const std::string& name);

}  // namespace gpunn::python
