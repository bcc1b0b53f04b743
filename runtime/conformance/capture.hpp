#pragma once

#include "conformance/workbench.hpp"
#include "ops/case.hpp"

namespace gpunn::conformance {

using ops::Case;

// One op captured by itself and replayed on inputs that changed since: it must give what it gives when it is enqueued,
// bit for bit where it says that it is deterministic.
void run_captured(const Case& test, Workbench& bench, CheckCase& result);

}  // namespace gpunn::conformance
