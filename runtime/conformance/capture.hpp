#pragma once

#include "conformance/workbench.hpp"
#include "ops/case.hpp"

namespace gpunn::conformance {

using ops::Case;

// Captures one op and replays it on inputs that changed since. It must give the result of an ordinary call, bit for bit
// if it says that it is deterministic.
void run_captured(const Case& test, Workbench& bench, CheckCase& result);

}  // namespace gpunn::conformance
