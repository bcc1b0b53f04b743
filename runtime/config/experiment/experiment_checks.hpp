#pragma once

#include <gpunn/experiment.hpp>

#include "config/diagnostics.hpp"
#include "config/given_keys.hpp"

namespace gpunn::config {

// Settings that are fine alone and don't go together. What rooms know of the keys of theirs, they check.
void check_experiment(const Experiment& experiment, const GivenKeys& given, Diagnostics& diagnostics);

}  // namespace gpunn::config
