#pragma once

#include <gpunn/experiment.hpp>

#include "config/diagnostics.hpp"
#include "config/given_keys.hpp"

namespace gpunn::config {

// Checks of settings that are valid alone but contradict each other. Each room checks its own keys.
void check_experiment(const Experiment& experiment, const GivenKeys& given, Diagnostics& diagnostics);

}  // namespace gpunn::config
