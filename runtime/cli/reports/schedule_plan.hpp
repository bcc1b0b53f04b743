#pragma once

#include <gpunn/plan.hpp>

#include <cstddef>
#include <string>

namespace gpunn::cli {

// A training's learning rates as text: the curve, and a table of the steps where it begins, turns and ends.
std::string schedule_text(const ScheduleReport& report, std::size_t columns, bool utf8, bool colour);

}  // namespace gpunn::cli
