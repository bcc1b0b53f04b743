#pragma once

#include <string>

#include <yaml-cpp/exceptions.h>

namespace gpunn::config {

// What is wrong with the YAML, and what to do about it, in place of yaml-cpp's word for the state of its parser.
std::string yaml_syntax_fault(const YAML::Exception& error);

}  // namespace gpunn::config
