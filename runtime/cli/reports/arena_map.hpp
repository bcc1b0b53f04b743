#pragma once

#include <gpunn/plan.hpp>

#include <string>

namespace gpunn::cli {

// The arena over a step as text: a table of its tensors in order of offset, and a drawing of at most `columns` by 24
// characters. In the drawing a column is a time (the first op at the left), a row is a range of offsets (0 at the top),
// and a letter is the tensor that occupies them.
std::string arena_map(const PlanReport& report, std::size_t columns);

}  // namespace gpunn::cli
