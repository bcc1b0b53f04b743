#pragma once

#include <string>

namespace gpunn {

std::string version();       // "0.1.0"
std::string build_record();  // compiler, flags and library versions, a line each

}  // namespace gpunn
