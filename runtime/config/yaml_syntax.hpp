#pragma once

#include <string>

#include <yaml-cpp/exceptions.h>

namespace gpunn::config {

// The mistake in the YAML and its remedy, instead of yaml-cpp's words about the state of its parser.
std::string yaml_syntax_fault(const YAML::Exception& error);

}  // namespace gpunn::config
