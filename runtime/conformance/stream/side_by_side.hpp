#pragma once

#include "conformance/workbench.hpp"
#include "ops/case.hpp"

namespace gpunn::conformance {

using ops::Case;

// Runs two kernels of one op on two streams at the same time, repeatedly, each with its own inputs: the results are
// right only if the kernels share nothing. For plugins that allow this (GPUNN_EXTENSION_CONCURRENT_STREAMS). The device
// decides what runs at the same time, so a fault may be missed, but a reported fault is real.
void run_side_by_side(const Case& test, Workbench& bench, CheckCase& result);

}  // namespace gpunn::conformance
