#pragma once

#include <gpunn/bench.hpp>

#include <string>

#include "cli/check_report.hpp"

namespace gpunn::cli {

// A row an op, backend and kernel; below, the ceilings, what was not measured and what is wrong.
std::string bench_report(const OpBenchReport& report, ReportFormat format, bool colour);

}  // namespace gpunn::cli
