#pragma once

#include "conformance/training/samples.hpp"
#include "conformance/workbench.hpp"

namespace gpunn::conformance {

// Trains twice from one seed, op by op and by launching captured graphs, and compares all that the training keeps after
// each step, bit for bit.
void run_replay(const SampleTraining& sample, Workbench& bench, CheckCase& result);

}  // namespace gpunn::conformance
