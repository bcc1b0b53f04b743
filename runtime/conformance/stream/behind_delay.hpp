#pragma once

#include "conformance/workbench.hpp"
#include "ops/case.hpp"

namespace gpunn::conformance {

using ops::Case;

// A kernel on a stream that is busy, between the copies that bring its inputs and the ones that carry its outputs away:
// right only if it runs on the stream that it is given and reads nothing before its turn.
void run_behind_delay(const Case& test, Workbench& bench, CheckCase& result);

}  // namespace gpunn::conformance
