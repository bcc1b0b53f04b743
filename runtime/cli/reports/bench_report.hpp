#pragma once

#include <gpunn/bench.hpp>

#include <string>

#include "cli/reports/check_report.hpp"

namespace gpunn::cli {

// A row for each op, backend and kernel. Below it, the ceilings, the ops that were not measured, and the wrong results.
std::string bench_report(const OpBenchReport& report, ReportFormat format, bool colour);

}  // namespace gpunn::cli
