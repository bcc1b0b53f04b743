#pragma once

#include "conformance/workbench.hpp"
#include "ops/case.hpp"

namespace gpunn::conformance {

using ops::Case;

// Two kernels of one op on two streams at the same time, over and over, each with inputs of its own: right only if they
// share nothing. For plugins that say so (GPUNN_EXTENSION_CONCURRENT_STREAMS); what happens to run at the same time is
// the device's affair, so a fault may be missed, but none is made up.
void run_side_by_side(const Case& test, Workbench& bench, CheckCase& result);

}  // namespace gpunn::conformance
