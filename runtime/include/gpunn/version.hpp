#pragma once

#include <gpunn/export.h>

#include <string>

namespace gpunn {

GPUNN_API std::string version();       // "0.2.0"
GPUNN_API std::string build_record();  // compiler, flags and library versions, a line each

}  // namespace gpunn
