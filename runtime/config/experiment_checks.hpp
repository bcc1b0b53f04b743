#pragma once

#include <gpunn/experiment.hpp>

#include <map>
#include <set>
#include <string>

#include "config/diagnostics.hpp"

namespace gpunn::config {

// What the user wrote.
struct GivenKeys {
  SourceLocation origin;                         // where to point for a key that nobody wrote
  std::map<std::string, SourceLocation> places;  // of each key, by its path
  std::set<std::string> bad;                     // those whose value was refused: no second complaint about them
};

// Settings that are fine alone and don't go together.
void check_experiment(const Experiment& experiment, const GivenKeys& given, Diagnostics& diagnostics);

}  // namespace gpunn::config
