#pragma once

#include <gpunn/check.hpp>

#include <string>
#include <vector>

namespace gpunn::cli {

enum class ReportFormat { text, markdown };

// The report of a check. One backend: its cases by suite and op. Several: verdicts by op and backend.
std::string check_report(const std::vector<CheckReport>& reports, ReportFormat format, bool colour);

}  // namespace gpunn::cli
